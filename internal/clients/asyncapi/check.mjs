// check.mjs FILE reads an AsyncAPI document by AsyncAPI's own parser, with its rules
// and Spectral's, and prints how many messages it has. What is wrong, down to
// warnings, it prints, and exits with 1.
import { readFileSync } from "node:fs";
import { Parser } from "@asyncapi/parser";

const warning = 1; // Spectral's severities are 0 error, 1 warning, 2 information, 3 hint
const { document, diagnostics } = await new Parser().parse(readFileSync(process.argv[2], "utf8"));
const wrong = diagnostics.filter((d) => d.severity <= warning);
for (const d of wrong) console.log(`${d.code} at ${d.path.join(".")}: ${d.message}`);
if (document) console.log(`${document.allMessages().length} messages, ${document.allOperations().length} operations`);
process.exitCode = wrong.length > 0 || !document ? 1 : 0;
