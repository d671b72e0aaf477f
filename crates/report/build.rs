// SPDX-License-Identifier: Apache-2.0
//! Bundles the page's script and style with npm and esbuild; the binary then carries them.
//!
//! Packages are installed only when `package-lock.json` differs from the one that was installed last, and the
//! bundle goes to `OUT_DIR`: an ordinary build touches neither the network nor the source tree.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

/// What the bundle depends on, beside the packages that the lock file names.
const SOURCES: &[&str] = &["web/src", "web/build.js", "web/package.json", "web/package-lock.json", "web/.npmrc"];

fn main() -> ExitCode {
    if let Err(sentence) = bundle() {
        eprintln!("{sentence}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn bundle() -> Result<(), String> {
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
    }
    println!("cargo::rerun-if-changed=build.rs");
    let web = folder("CARGO_MANIFEST_DIR")?.join("web");
    install(&web)?;
    let out = folder("OUT_DIR")?;
    npm(&web, &["run", "--silent", "build", "--", &out.to_string_lossy()])
}

fn folder(variable: &str) -> Result<PathBuf, String> {
    env::var_os(variable).map(PathBuf::from).ok_or_else(|| format!("cargo did not set {variable}"))
}

/// Installs the packages of the lock file, if they are not there already.
fn install(web: &Path) -> Result<(), String> {
    let wanted =
        fs::read(web.join("package-lock.json")).map_err(|e| format!("failed to read package-lock.json: {e}"))?;
    let stamp = web.join("node_modules/.installed-lock.json");
    if fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    npm(web, &["ci", "--no-progress"])?;
    fs::write(&stamp, wanted).map_err(|e| format!("failed to write {}: {e}", stamp.display()))
}

fn npm(web: &Path, arguments: &[&str]) -> Result<(), String> {
    let command = format!("npm {}", arguments.join(" "));
    let output = Command::new("npm").args(arguments).current_dir(web).output().map_err(|e| {
        format!("failed to start `{command}`: {e}. The HTML report's script is bundled with npm: install Node.js 18 or later")
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "`{command}` failed in {}. The first build fetches the page's packages from the npm registry, which needs the \
         network or a filled npm cache; later builds do not. npm said:\n{said}",
        web.display()
    ))
}
