#!/usr/bin/env node
// Applies patches with the library that the clients use, the way they call it; and diffs, for comparison of sizes.
//
// Standard input: JSON lines, each {document, patch} or {before, after}.
// Standard output: one JSON line each:
//   {document, patch}  -> {result} or {error}; `text` is JSON.stringify(result), where 1 and 1.0 are one, as in JavaScript
//   {before, after}    -> {patch, bytes}: what `compare` finds, and the UTF-8 length of its JSON text
import { createInterface } from "node:readline";
import jsonpatch from "fast-json-patch";

function answer({ document, patch, before, after }) {
  if (patch === undefined) {
    const found = jsonpatch.compare(before, after);
    return { patch: found, bytes: Buffer.byteLength(JSON.stringify(found)) };
  }
  try {
    // validate, and do not mutate: exactly as the client's reducer does
    const result = jsonpatch.applyPatch(document, patch, true, false).newDocument;
    return { result, text: JSON.stringify(result) };
  } catch (error) {
    return { error: error.message.split("\n")[0] };
  }
}

const lines = [];
for await (const line of createInterface({ input: process.stdin })) {
  if (line) lines.push(JSON.stringify(answer(JSON.parse(line))));
}
process.stdout.write(lines.join("\n") + "\n");
