// SPDX-License-Identifier: Apache-2.0
//! Which kernels there are to try: of every series (6.1, 6.12) that apt offers the newest package, but no more
//! than the oldest and the newest series. A kernel that was fetched once is kept.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// A kernel to boot.
#[derive(Debug)]
pub struct Kernel {
    /// Its package.
    pub name: String,
    /// The compressed kernel.
    pub vmlinuz: PathBuf,
}

/// The kernels to try, fetched into `folder` where they are not there yet.
///
/// # Errors
/// Neither the package manager nor an earlier run has one; the sentence says why.
pub fn kernels(folder: &Path) -> Result<Vec<Kernel>> {
    match fetch_all(folder) {
        Ok(kernels) if !kernels.is_empty() => Ok(kernels),
        // Lists that are missing or out of date name packages that are not there any more.
        _ => command("apt-get", &["-q", "update"], folder)
            .and_then(|_| fetch_all(folder))
            .or_else(|why| kept(folder, why)),
    }
}

fn fetch_all(folder: &Path) -> Result<Vec<Kernel>> {
    let offered = command("apt-cache", &["pkgnames", "linux-image-"], folder)?;
    let names = picked(offered.lines());
    if names.is_empty() {
        bail!("apt offers no kernel for PCs (linux-image-VERSION-amd64)");
    }
    names.iter().map(|name| fetch(name, folder)).collect()
}

fn fetch(name: &str, folder: &Path) -> Result<Kernel> {
    let own = folder.join(name);
    if let Some(kernel) = kept_in(&own) {
        return Ok(kernel);
    }
    fs::create_dir_all(&own).with_context(|| format!("failed to make `{}`", own.display()))?;
    // Root may write where apt's own user may not.
    command("apt-get", &["-q", "-o", "APT::Sandbox::User=root", "download", name], &own)?;
    let unpack = "dpkg-deb --fsys-tarfile ./*.deb | tar x --wildcards './boot/vmlinuz-*' && rm ./*.deb";
    command("sh", &["-c", unpack], &own)?;
    kept_in(&own).with_context(|| format!("package {name} holds no /boot/vmlinuz-*"))
}

/// Kernels of earlier runs, where nothing can be fetched now.
fn kept(folder: &Path, why: anyhow::Error) -> Result<Vec<Kernel>> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut kernels: Vec<Kernel> = entries.filter_map(|entry| kept_in(&entry.path())).collect();
    kernels.sort_by(|a, b| a.name.cmp(&b.name));
    if kernels.is_empty() { Err(why) } else { Ok(kernels) }
}

fn kept_in(own: &Path) -> Option<Kernel> {
    let mut files = fs::read_dir(own.join("boot")).ok()?.flatten();
    let vmlinuz = files.find(|f| f.file_name().to_string_lossy().starts_with("vmlinuz-"))?.path();
    Some(Kernel { name: own.file_name()?.to_string_lossy().into_owned(), vmlinuz })
}

/// The newest package of each series; of more than two series the first and the last.
fn picked<'a>(offered: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut newest: BTreeMap<(u64, u64), (Vec<u64>, bool, &str)> = BTreeMap::new();
    for name in offered {
        let Some((version, signed)) = parse(name) else { continue };
        let [major, minor, ..] = version[..] else { continue };
        let best = newest.entry((major, minor)).or_default();
        *best = (version, signed, name).max(std::mem::take(best));
    }
    let all: Vec<String> = newest.into_values().map(|(_, _, name)| name.to_string()).collect();
    match &all[..] {
        [first, _, .., last] => vec![first.clone(), last.clone()],
        _ => all,
    }
}

/// Numbers of the version, and whether the package is signed, for an ordinary kernel; none for the cloud's, the
/// real-time ones, and symbols.
fn parse(name: &str) -> Option<(Vec<u64>, bool)> {
    let rest = name.strip_prefix("linux-image-")?;
    let signed = rest.strip_suffix("-amd64");
    let version = signed.or_else(|| rest.strip_suffix("-amd64-unsigned"))?;
    let words = version.replace("+deb", ".").replace("+bpo", ".");
    let numbers = words.split(['.', '-', '+']).map(|n| n.parse().ok()).collect::<Option<Vec<u64>>>()?;
    Some((numbers, signed.is_some()))
}

fn command(program: &str, args: &[&str], dir: &Path) -> Result<String> {
    let output = Command::new(program).args(args).current_dir(dir).output();
    let output = output.with_context(|| format!("failed to run `{program}`"))?;
    if !output.status.success() {
        bail!("`{program} {}` failed: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_of_the_first_and_the_last_series() {
        let offered = "linux-image-6.1.0-9-amd64
            linux-image-6.1.0-56-amd64-unsigned
            linux-image-6.1.0-56-amd64
            linux-image-6.1.0-57-cloud-amd64
            linux-image-6.1.0-57-rt-amd64
            linux-image-6.1.0-57-amd64-dbg
            linux-image-amd64
            linux-image-6.9.7+bpo-amd64
            linux-image-6.12.107+deb12-amd64-unsigned
            linux-image-6.12.95+deb12-amd64";
        assert_eq!(
            picked(offered.lines().map(str::trim)),
            ["linux-image-6.1.0-56-amd64", "linux-image-6.12.107+deb12-amd64-unsigned"]
        );
        assert!(picked(["linux-image-generic"].into_iter()).is_empty());
    }
}
