// SPDX-License-Identifier: Apache-2.0
//! Compiles each `src/probes/*.bpf.c` and writes its skeleton into OUT_DIR.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use libbpf_cargo::SkeletonBuilder;

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo:rerun-if-changed=bpf");
    for entry in fs::read_dir("src/probes")? {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(|n| n.to_str()).and_then(|n| n.strip_suffix(".bpf.c")) else {
            continue;
        };
        println!("cargo:rerun-if-changed={}", path.display());
        build(&path, &out.join(format!("{name}.skel.rs")))?;
    }
    Ok(())
}

fn build(source: &Path, skeleton: &Path) -> Result<(), Box<dyn Error>> {
    SkeletonBuilder::new()
        .source(source)
        .clang_args(["-Ibpf", "-Wall", "-Werror", "-mcpu=v3", "-I/usr/include/x86_64-linux-gnu"])
        .build_and_generate(skeleton)
        .map_err(|e| {
            format!("failed to compile {} (is clang installed? try `make install-deps`): {e:#}", source.display())
                .into()
        })
}
