// SPDX-License-Identifier: Apache-2.0
//! The same binary on other kernels: those that the package manager offers, booted under qemu.
//!
//! qemu interprets the guest's instructions, so this needs no virtualization and times in the guest mean nothing:
//! what is judged are causes, subjects and shares. A guest holds nothing but busybox, the binary and three small
//! services; `lab/kernels/init.sh` runs the steps there, and `judge` says what they should have given.

mod guest;
mod image;
mod judge;
mod packages;

use std::fs;

use anyhow::{Context, Result};

use crate::paths::Paths;
use crate::stop::Stop;

/// Checks that passed and failed, and kernels that could not be tried.
#[derive(Debug, Default)]
pub struct Tally {
    /// Checks that passed.
    pub passed: usize,
    /// Checks that failed.
    pub failed: usize,
    /// 1 = no kernel could be tried.
    pub skipped: usize,
}

/// Boots each kernel and prints what came out.
///
/// # Errors
/// A folder or the guest's file system cannot be made, or the user stopped it.
pub fn run(paths: &Paths, stop: &Stop) -> Result<Tally> {
    let folder = paths.target.join("kernels");
    fs::create_dir_all(&folder).with_context(|| format!("failed to make `{}`", folder.display()))?;
    let mut tally = Tally::default();
    let kernels = match guest::can_boot().and_then(|()| packages::kernels(&folder)) {
        Ok(kernels) => kernels,
        Err(why) => {
            println!("SKIPPED: no other kernel can be booted here: {why:#}");
            tally.skipped = 1;
            return Ok(tally);
        }
    };
    let initrd = image::make(paths, &folder)?;
    for kernel in &kernels {
        println!("\n{}", kernel.name);
        let results = guest::boot(kernel, &initrd, &folder, stop)?;
        println!("{}", indented(&results.text("doctor.out")));
        for (check, objection) in judge::checks(&results) {
            match objection {
                None => tally.passed += 1,
                Some(_) => tally.failed += 1,
            }
            println!("{}", objection.map_or(format!("ok   {check}"), |why| format!("FAIL {check}: {why}")));
        }
    }
    Ok(tally)
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  | {line}\n")).collect()
}
