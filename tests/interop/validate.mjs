#!/usr/bin/env node
// Checks events against the clients' own schemas, many in one process.
//
// Standard input: JSON lines {schema, event}, `schema` "1.0.0" or "0.0.59".
// Standard output: one JSON line each: {faults: [{path, message}], stripped: bool}
//   stripped   the schema let the event pass but read it as something else: a member it does not know went missing.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { isDeepStrictEqual } from "node:util";
import { EventSchemas } from "@ag-ui/core/schemas";

const require = createRequire(import.meta.url);
const older = createRequire(require.resolve("ag-ui-client-0"))("@ag-ui/core");
const schemas = { "1.0.0": EventSchemas, "0.0.59": older.EventSchemas };

// `undefined` is how a schema may spell an absent member.
const written = (value) => JSON.parse(JSON.stringify(value));

const lines = [];
for await (const line of createInterface({ input: process.stdin })) {
  if (!line) continue;
  const { schema, event } = JSON.parse(line);
  const result = schemas[schema].safeParse(event);
  const faults = result.success
    ? []
    : result.error.issues.map(({ path, message }) => ({ path: "/" + path.join("/"), message }));
  lines.push(JSON.stringify({ faults, stripped: result.success && !isDeepStrictEqual(written(result.data), event) }));
}
process.stdout.write(lines.join("\n") + "\n");
