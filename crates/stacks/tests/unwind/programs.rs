// SPDX-License-Identifier: Apache-2.0
//! Programs of known shape, built by the real tool chains.
#![allow(clippy::unwrap_used, reason = "a test whose program does not run has failed")]

use std::{fs, path::PathBuf, process::Command};

use tempfile::TempDir;

/// A program in its own folder.
pub struct Built {
    folder: TempDir,
    pub path: PathBuf,
}

impl Built {
    pub fn command(&self) -> Command {
        Command::new(&self.path)
    }

    /// Removes the program, as an upgrade does with one that runs.
    pub fn delete(self) {
        drop(self.folder);
    }
}

/// Fails when a tool chain is missing; everything else about it must work.
pub fn is_there(tool: &str) -> Result<(), String> {
    let found = Command::new(tool).arg(if tool == "go" { "version" } else { "--version" }).output().is_ok();
    if found { Ok(()) } else { Err(format!("there is no `{tool}` on this machine")) }
}

/// A function with more live values than registers, so that rbp holds one of them.
pub const C_SPIN: &str = r#"
static volatile long sink;
__attribute__((noinline)) long spin_leaf(long *v, long a, long b, long c, long d, long e) {
    long f = v[0], g = v[1], h = v[2], i = v[3], j = v[4], k = v[5];
    for (long n = 0; n < 200000; n++) {
        a += b * c; b ^= d + f; c += e | 1; d -= g; e += a ^ h; f ^= c + i; g += j; h -= k; i ^= a; j += b; k ^= e;
        sink += a;
    }
    return a + b + c + d + e + f + g + h + i + j + k;
}
__attribute__((noinline)) long spin_middle(long n) {
    long v[6] = { n, 2, 3, 4, 5, 6 };
    return spin_leaf(v, n, 2, 3, 4, 5) + v[n & 3];
}
__attribute__((noinline)) void spin_forever(void) { for (;;) sink += spin_middle(sink & 7); }
"#;

/// Builds a C program without frame pointers.
pub fn c(main: &str, flags: &[&str]) -> Built {
    let folder = tempfile::tempdir().unwrap();
    let (source, path) = (folder.path().join("program.c"), folder.path().join("program"));
    fs::write(&source, format!("#include <stdio.h>\n{C_SPIN}\n{main}")).unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-fomit-frame-pointer", "-pthread", "-o"]).arg(&path).arg(&source).args(flags);
    assert!(gcc.status().unwrap().success());
    Built { folder, path }
}

/// Builds a Go program.
pub fn go(main: &str, flags: &[&str]) -> Built {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("go.mod"), "module program\ngo 1.20\n").unwrap();
    fs::write(folder.path().join("main.go"), main).unwrap();
    let mut go = Command::new("go");
    go.current_dir(folder.path()).args(["build", "-o", "program"]).args(flags).arg(".");
    assert!(go.status().unwrap().success());
    let path = folder.path().join("program");
    Built { folder, path }
}
