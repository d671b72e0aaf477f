// SPDX-License-Identifier: Apache-2.0
//! One guest: boots, runs its steps, hands their results over through a serial line, and is gone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::packages::Kernel;
use crate::stop::Stop;

/// A guest that takes longer hangs: a minute is usual, twice that on a busy machine.
const LIMIT: Duration = Duration::from_secs(280);

/// An emulated timer is late where the host is busy: no panic and no complaints because of that.
const BOOT: &str = "console=ttyS0 quiet panic=-1 nowatchdog no_timer_check rcupdate.rcu_cpu_stall_suppress=1";

const QEMU: &str = "qemu-system-x86_64";

/// What a guest's steps left: `NAME.out`, `NAME.err`, `NAME.code`.
pub struct Results {
    dir: PathBuf,
    /// The end of what the kernel and the script said.
    pub console: String,
}

impl Results {
    /// A file of the guest; empty where the step was not reached.
    pub fn text(&self, name: &str) -> String {
        fs::read(self.dir.join(name)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }
}

/// Whether the programs for a guest are there.
///
/// # Errors
/// One is missing; the sentence says what to install.
pub fn can_boot() -> Result<()> {
    for (program, package) in [(QEMU, "qemu-system-x86"), ("cpio", "cpio"), ("busybox", "busybox-static")] {
        if Command::new(program).arg("--help").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
            bail!("`{program}` is missing; install {package} (`make install-deps` does)");
        }
    }
    Ok(())
}

/// Boots a kernel and waits for its results.
///
/// # Errors
/// qemu cannot be started, or the user stopped it. A guest that hangs or panics has few results.
pub fn boot(kernel: &Kernel, initrd: &Path, folder: &Path, stop: &Stop) -> Result<Results> {
    let dir = folder.join(&kernel.name).join("results");
    if dir.exists() {
        fs::remove_dir_all(&dir).context("failed to remove the last results")?;
    }
    fs::create_dir_all(&dir).context("failed to make the folder of results")?;
    let (console, archive) = (dir.join("console"), dir.join("results.tar"));
    let mut qemu = Qemu::start(kernel, initrd, &console, &archive)?;
    let began = Instant::now();
    while !qemu.has_ended() {
        stop.sleep(Duration::from_millis(200))?;
        if began.elapsed() > LIMIT {
            println!("the guest did not end within {LIMIT:?} and was stopped");
            break;
        }
    }
    drop(qemu);
    let unpacked = Command::new("tar").arg("xf").arg(&archive).arg("-C").arg(&dir).stderr(Stdio::null()).status();
    unpacked.context("failed to run tar")?; // a torn archive gives what came before the tear
    let said = fs::read(&console).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = said.lines().collect();
    Ok(Results { dir, console: lines[lines.len().saturating_sub(20)..].join("\n") })
}

/// The emulator; dropping it ends the guest.
struct Qemu(Child);

impl Qemu {
    fn start(kernel: &Kernel, initrd: &Path, console: &Path, results: &Path) -> Result<Self> {
        let serial = |path: &Path| format!("file:{}", path.display());
        // It ends with us, however we end; and gives way to the tests that run beside it. One thread for both of the
        // guest's CPUs: with one each, the emulator now and then runs an instruction that the other CPU has patched
        // since (a static key), and the guest panics on a breakpoint that is no longer there.
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "nice", "-n", "5", QEMU])
            .args(["-M", "q35", "-accel", "tcg,thread=single", "-cpu", "max", "-smp", "2", "-m", "1024"])
            .args(["-display", "none", "-monitor", "none", "-nic", "none", "-no-reboot"])
            .args(["-append", BOOT])
            .arg("-kernel")
            .arg(&kernel.vmlinuz)
            .arg("-initrd")
            .arg(initrd)
            .args(["-serial", &serial(console), "-serial", &serial(results)])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .context("failed to start qemu")?;
        Ok(Self(child))
    }

    fn has_ended(&mut self) -> bool {
        self.0.try_wait().is_ok_and(|status| status.is_some())
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        let _ = self.0.kill(); // it may have ended by itself
        let _ = self.0.wait();
    }
}
