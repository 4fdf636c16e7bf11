#!/usr/bin/env node
// Runs real HttpAgents and prints what an application would hold after each run, as one JSON object.
//
// Standard input: {client, threads: [{url, headers?, threadId?, state?, messages?, runs: [...]}], timeout?}
//   client    "1.0.0" or "0.0.59": which @ag-ui/client runs.
//   threads   one agent object each, one after the other.
//   runs      inputs, in turn on that agent, so that state, messages and open interrupts carry over as they do in an
//             application: {runId, tools, context, forwardedProps} as the client takes them; `say` (appends a user message),
//             `messages` (appends them), `state` (sets it), `answers` ({interruptId: payload}, resumed with the client's own
//             buildResumeArray; the payload {"abandon": true} dismisses), `sameRunId` (the run before's, as CopilotKit does
//             when it resumes), `abortAfter` ({type, count}: aborts at the nth event of that type).
// Standard output: {threads: [[{resolved, error, state, messages, events, warnings, ...}]]}
//
// The client resolves also when the run failed, and when a stream ends without a terminal event: `terminal` tells.
import { readFileSync } from "node:fs";

const packages = { "1.0.0": "@ag-ui/client", "0.0.59": "ag-ui-client-0" };

const text = (value) =>
  value instanceof Error ? value.message : typeof value === "string" ? value : JSON.stringify(value);

// What the client prints while it works is what an application's user would find in the console.
function listen(sink) {
  const saved = { warn: console.warn, error: console.error, log: console.log };
  for (const level of Object.keys(saved)) console[level] = (...parts) => sink.push(parts.map(text).join(" "));
  return () => Object.assign(console, saved);
}

function resume(agent, answers, buildResumeArray) {
  const entries = Object.fromEntries(
    Object.entries(answers).map(([id, payload]) => [
      id,
      payload?.abandon === true ? { status: "cancelled" } : { status: "resolved", payload },
    ]),
  );
  return buildResumeArray(agent.pendingInterrupts, entries);
}

async function once(agent, input, { buildResumeArray }, timeout) {
  const run = { events: [], warnings: [], terminal: null };
  if (input.state !== undefined) agent.state = input.state;
  if (input.messages) agent.addMessages(input.messages);
  if (input.say !== undefined) {
    agent.addMessage({ id: `user-${agent.messages.length}`, role: "user", content: input.say });
  }
  const parameters = {};
  for (const name of ["runId", "tools", "context", "forwardedProps"]) {
    if (input[name] !== undefined) parameters[name] = input[name];
  }
  const seen = {};
  const subscriber = {
    onRunInitialized({ input }) {
      run.runId = input.runId;
    },
    onEvent({ event }) {
      run.events.push(event.type);
      if (event.type === "RUN_FINISHED" || event.type === "RUN_ERROR") run.terminal = event.type;
      seen[event.type] = (seen[event.type] ?? 0) + 1;
      const abort = input.abortAfter;
      if (abort && abort.type === event.type && seen[event.type] === (abort.count ?? 1)) {
        setTimeout(() => agent.abortRun(), 0);
      }
    },
    onRunFinishedEvent(parameters) {
      const { event } = parameters;
      run.outcome = event.outcome?.type ?? "success";
      run.result = event.result;
      run.usage = event.usage;
      run.metadata = event.metadata;
      run.pendingToolCallIds = parameters.pendingToolCallIds;
    },
    onRunErrorEvent({ event }) {
      run.runError = { message: event.message, code: event.code, usage: event.usage };
    },
  };
  const unhandled = (error) => run.warnings.push(`unhandled: ${text(error)}`);
  process.on("unhandledRejection", unhandled);
  process.on("uncaughtException", unhandled);
  const quiet = listen(run.warnings);
  let timer;
  try {
    if (input.answers) parameters.resume = resume(agent, input.answers, buildResumeArray);
    const expired = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no end within ${timeout} ms`)), timeout);
    });
    await Promise.race([agent.runAgent(parameters, subscriber), expired]);
    run.resolved = true;
    run.error = null;
  } catch (error) {
    run.resolved = false;
    run.error = error?.issues ? JSON.stringify(error.issues) : text(error);
    run.status = error?.status;
    run.payload = error?.payload;
  } finally {
    clearTimeout(timer);
    // A turn of the loop, so that what nobody handled is in the list.
    await new Promise((resolve) => setImmediate(resolve));
    quiet();
    process.off("unhandledRejection", unhandled);
    process.off("uncaughtException", unhandled);
  }
  run.state = structuredClone(agent.state);
  run.messages = structuredClone(agent.messages);
  run.interrupts = structuredClone(agent.pendingInterrupts ?? []);
  return run;
}

const request = JSON.parse(readFileSync(0, "utf8"));
const client = await import(packages[request.client]);
const threads = [];
for (const { url, headers, threadId, state, messages, runs } of request.threads) {
  const agent = new client.HttpAgent({ url, headers, threadId, initialState: state, initialMessages: messages });
  // The constructor turns null into {}.
  if (state === null) agent.state = null;
  const results = [];
  for (const input of runs) {
    const given = input.sameRunId ? { ...input, runId: results.at(-1).runId } : input;
    results.push(await once(agent, given, client, request.timeout ?? 20000));
  }
  threads.push(results);
}
process.stdout.write(JSON.stringify({ threads }) + "\n", () => process.exit(0));
