// SPDX-License-Identifier: Apache-2.0
// Bundles the page's script and style into a folder: page.js, page.css, and for each its hash for the
// Content-Security-Policy of the page. Usage: node build.js FOLDER
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const out = process.argv[2];
if (!out) throw new Error("usage: node build.js FOLDER");

const result = await build({
  entryPoints: ["src/page.js"],
  bundle: true,
  minify: true,
  format: "iife",
  charset: "ascii",
  // The first versions with the CSS functions light-dark() and color-mix().
  target: ["chrome123", "firefox120", "safari17.5"],
  legalComments: "none",
  metafile: true,
  write: false,
  outdir: out,
});

// The licences of the bundled packages ask for their notices to go with every copy.
function notices() {
  const inputs = Object.keys(result.metafile.inputs);
  const packages = new Set(inputs.map((path) => path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[1]));
  packages.delete(undefined);
  return [...packages].sort().map((name) => {
    const folder = join("node_modules", name);
    const { version, license } = JSON.parse(readFileSync(join(folder, "package.json")));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    const text = license === "Apache-2.0" || !file ? "" : readFileSync(join(folder, file), "utf8").trim();
    return `${name} ${version}, ${license}\n${text}`.trim();
  });
}

for (const { path, text } of result.outputFiles) {
  const name = path.endsWith(".css") ? "page.css" : "page.js";
  const notice = name === "page.js" ? `/*!\n${notices().join("\n\n").replaceAll("*/", "* /")}\n*/` : "";
  const content = `${text.trim()}\n${notice}`.trim();
  if (content.toLowerCase().includes(`</${name === "page.js" ? "script" : "style"}`)) {
    throw new Error(`${name} would end its own element`);
  }
  writeFileSync(join(out, name), content);
  const hash = createHash("sha256").update(content, "utf8").digest("base64");
  writeFileSync(join(out, `${name}.sha256`), hash);
}
