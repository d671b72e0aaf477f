// SPDX-License-Identifier: Apache-2.0
//! Building the services, into `target/lab/bin`. The language tools cache, so a second time is quick.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::paths::Paths;

/// Something that has to be built before a scenario can start.
#[derive(Clone, Copy, Debug)]
pub enum Build {
    /// A Go package: folder of its module, package in it, name of the binary.
    Go(&'static str, &'static str, &'static str),
    /// A C program of one file: the file, name of the binary.
    C(&'static str, &'static str),
    /// A C++ program of one file: the file, name of the binary.
    Cxx(&'static str, &'static str),
    /// A Rust program of one file: the file, name of the binary.
    Rust(&'static str, &'static str),
    /// A Rust package with dependencies, a workspace of its own: its folder, name of the binary.
    Cargo(&'static str, &'static str),
    /// A Java program of one class: the file, name of the jar.
    Java(&'static str, &'static str),
    /// A file that runs as it is: the file, name of the copy.
    Script(&'static str, &'static str),
}

impl Build {
    /// The file or folder that it is made of, in the repository.
    pub fn source(&self) -> PathBuf {
        match *self {
            Self::Go(module, package, _) => Path::new(module).join(package),
            Self::Cargo(source, _)
            | Self::C(source, _)
            | Self::Cxx(source, _)
            | Self::Rust(source, _)
            | Self::Java(source, _)
            | Self::Script(source, _) => source.into(),
        }
    }
}

/// Builds all of `builds`.
///
/// # Errors
/// A compiler is missing or refused a source.
pub fn build(builds: &[Build], paths: &Paths) -> Result<()> {
    fs::create_dir_all(paths.bin()).context("failed to make the folder for built services")?;
    for step in builds {
        build_one(*step, paths)?;
    }
    Ok(())
}

fn build_one(step: Build, paths: &Paths) -> Result<()> {
    match step {
        Build::Go(module, package, name) => {
            // -trimpath: recordings are kept, and say nothing of where they were built.
            let mut go = Command::new("go");
            go.args(["build", "-trimpath", "-o"]).arg(paths.bin().join(name)).arg(package);
            run(go.current_dir(paths.repository.join(module)), "Go")
        }
        Build::C(source, name) => {
            let mut cc = Command::new("cc");
            cc.args(["-O2", "-g", "-Wall", "-Wextra", "-Werror", "-ffile-prefix-map=./=", "-o"]);
            cc.arg(paths.bin().join(name)).arg(source);
            run(cc.current_dir(&paths.repository), "a C compiler (Debian package gcc)")
        }
        Build::Cxx(source, name) => {
            let mut cxx = Command::new("c++");
            cxx.args(["-std=c++17", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-ffile-prefix-map=./=", "-o"]);
            cxx.arg(paths.bin().join(name)).arg(source);
            run(cxx.current_dir(&paths.repository), "a C++ compiler (Debian package g++)")
        }
        Build::Cargo(source, name) => build_cargo(source, name, paths),
        Build::Rust(source, name) => {
            let mut rustc = Command::new("rustc");
            rustc.args(["--edition", "2024", "-C", "opt-level=2", "-g"]);
            // Not where it was built, as with C.
            rustc.arg(format!("--remap-path-prefix={}=.", paths.repository.display()));
            rustc.arg("-o").arg(paths.bin().join(name)).arg(source);
            run(rustc.current_dir(&paths.repository), "Rust")
        }
        Build::Java(source, name) => build_java(source, name, paths),
        Build::Script(source, name) => {
            let copied = fs::copy(paths.repository.join(source), paths.bin().join(name));
            copied.map(drop).with_context(|| format!("failed to copy `{source}`"))
        }
    }
}

fn build_cargo(source: &str, name: &str, paths: &Paths) -> Result<()> {
    let (root, target) = (paths.lab().join("cargo"), paths.lab().join("cargo-target"));
    let mut cargo = Command::new("cargo");
    cargo.args(["install", "--quiet", "--locked", "--force", "--no-track", "--path", source, "--root"]).arg(&root);
    run(cargo.arg("--target-dir").arg(target).current_dir(&paths.repository), "Rust")?;
    let copied = fs::copy(root.join("bin").join(name), paths.bin().join(name));
    copied.map(drop).with_context(|| format!("failed to copy `{name}`"))
}

fn build_java(source: &str, name: &str, paths: &Paths) -> Result<()> {
    let classes = paths.lab().join("classes").join(name);
    let java = "a JDK (Debian package default-jdk-headless)";
    let mut javac = Command::new("javac");
    run(javac.arg("-d").arg(&classes).arg(paths.repository.join(source)), java)?;
    let mut jar = Command::new("jar");
    run(jar.args(["--create", "--file"]).arg(paths.bin().join(name)).arg("-C").arg(&classes).arg("."), java)
}

fn run(command: &mut Command, needs: &str) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("failed to run `{program}`: the lab needs {needs}"))?;
    if !output.status.success() {
        bail!("`{program}` failed:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
