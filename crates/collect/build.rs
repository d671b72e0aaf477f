// SPDX-License-Identifier: Apache-2.0
//! Compiles each `*.bpf.c` of `src/probes` and `src/collectors`, and writes its skeleton into OUT_DIR, and the names of all
//! types that any of them names.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use libbpf_cargo::SkeletonBuilder;
use libbpf_rs::btf::{Btf, BtfKind, BtfType};

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo:rerun-if-changed=bpf");
    let mut types = BTreeSet::new();
    for entry in fs::read_dir("src/probes")?.chain(fs::read_dir("src/collectors")?) {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(|n| n.to_str()).and_then(|n| n.strip_suffix(".bpf.c")) else {
            continue;
        };
        println!("cargo:rerun-if-changed={}", path.display());
        let object = out.join(format!("{name}.bpf.o"));
        build(&path, &object, &out.join(format!("{name}.skel.rs")))?;
        types.extend(named(&object)?);
    }
    let names: Vec<String> = types.into_iter().collect();
    let list = format!("/// Sorted.\npub const NAMES: [&str; {}] = {names:?};\n", names.len());
    Ok(fs::write(out.join("kernel_types.rs"), list)?)
}

/// Names of types by which a program could ask for the kernel's; what follows `___` only tells variants of one apart.
fn named(object: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let types = Btf::from_path(object)?;
    let is_named =
        |kind| matches!(kind, BtfKind::Struct | BtfKind::Union | BtfKind::Enum | BtfKind::Enum64 | BtfKind::Typedef);
    let all = (1..types.len()).filter_map(|id| types.type_by_id::<BtfType<'_>>(u32::try_from(id).ok()?.into()));
    let names =
        all.filter(|found| is_named(found.kind())).filter_map(|found| Some(found.name()?.to_str()?.to_string()));
    Ok(names.map(|name| name.split("___").next().unwrap_or_default().to_string()).collect())
}

fn build(source: &Path, object: &Path, skeleton: &Path) -> Result<(), Box<dyn Error>> {
    SkeletonBuilder::new()
        .source(source)
        .obj(object)
        .clang_args(["-Ibpf", "-Wall", "-Werror", "-mcpu=v3", "-I/usr/include/x86_64-linux-gnu"])
        .build_and_generate(skeleton)
        .map_err(|e| {
            format!("failed to compile {} (is clang installed? try `make install-deps`): {e:#}", source.display())
                .into()
        })
}
