// SPDX-License-Identifier: Apache-2.0
//! The guest's file system: busybox, the binary under test, three services, and the script that is process 1.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::paths::Paths;

/// Services of the guest, one C file each in `lab/kernels`.
const SERVICES: [&str; 3] = ["poller", "spinner", "bursts"];

/// Folders that the kernel's file systems are mounted on.
const MOUNTS: [&str; 4] = ["proc", "sys", "dev", "tmp"];

/// Makes the archive that the kernel unpacks into memory.
///
/// # Errors
/// A compiler or tool is missing, or a file cannot be written.
pub fn make(paths: &Paths, folder: &Path) -> Result<PathBuf> {
    let root = folder.join("root");
    if root.exists() {
        fs::remove_dir_all(&root).context("failed to remove the last guest's files")?;
    }
    let bin = root.join("bin");
    fs::create_dir_all(&bin).with_context(|| format!("failed to make `{}`", bin.display()))?;
    for mount in MOUNTS {
        fs::create_dir(root.join(mount))?;
    }
    let source = paths.repository.join("lab/kernels");
    for service in SERVICES {
        let mut cc = Command::new("cc");
        cc.args(["-O2", "-Wall", "-Wextra", "-Werror", "-static", "-pthread", "-o"]).arg(bin.join(service));
        run(cc.arg(source.join(format!("{service}.c"))))?;
    }
    fs::copy(busybox()?, bin.join("busybox")).context("failed to copy busybox")?;
    symlink("busybox", bin.join("sh"))?;
    // Line tables would be half of the guest's memory.
    run(Command::new("strip").arg("-o").arg(bin.join("wakewalk")).arg(&paths.wakewalk))?;
    fs::copy(source.join("init.sh"), root.join("init")).context("failed to copy init.sh")?;
    fs::set_permissions(root.join("init"), fs::Permissions::from_mode(0o755))?;
    let archive = "find . | cpio --quiet -o -H newc -R 0:0 > ../initrd";
    run(Command::new("sh").args(["-c", archive]).current_dir(&root))?;
    Ok(folder.join("initrd"))
}

fn busybox() -> Result<PathBuf> {
    let places = ["/bin/busybox", "/usr/bin/busybox"].map(PathBuf::from);
    places.into_iter().find(|path| path.exists()).context("there is no /bin/busybox; install busybox-static")
}

fn run(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("failed to run `{program}`"))?;
    if !output.status.success() {
        bail!("`{program}` failed:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
