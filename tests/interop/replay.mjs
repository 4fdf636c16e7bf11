#!/usr/bin/env node
// What the real client makes of streams of events: its verdict, and the state and messages that it holds.
//
// Standard input: one JSON object a line, {events, state?, messages?}; standard output: one a line, in the same order,
// {accepted, error, state, messages, warnings}. The events go through the client's whole pipeline, without HTTP.
import { createInterface } from "node:readline";
import { AbstractAgent } from "@ag-ui/client";
import { from } from "rxjs";

class Replay extends AbstractAgent {
  constructor({ events, state, messages }) {
    super({ initialState: state ?? {}, initialMessages: messages ?? [], threadId: "thread" });
    this.events = events;
  }

  run() {
    return from(this.events);
  }
}

async function replay(given) {
  const agent = new Replay(given);
  const warnings = [];
  console.warn = (...parts) => warnings.push(parts.map(String).join(" "));
  console.error = () => {};
  let error = null;
  try {
    await agent.runAgent({});
  } catch (thrown) {
    error = String(thrown?.message ?? thrown);
  }
  return { accepted: error === null, error, state: agent.state, messages: agent.messages, warnings };
}

for await (const line of createInterface({ input: process.stdin })) {
  const result = JSON.stringify(await replay(JSON.parse(line)));
  // A lone surrogate has no UTF-8, but an escape.
  process.stdout.write(result.replace(/[\u007f-\uffff]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0")) + "\n");
}
