// SPDX-License-Identifier: Apache-2.0
//! Inventory of the machine for `meta.json`, from text files alone.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use recording::meta::Host;

use crate::clock;
use crate::proc::{cpu_list, field, text};

/// What this machine is. Fields that its kernel does not tell stay empty.
pub fn inventory(root: &Path) -> Host {
    let line = |path: &str| text(&root.join(path)).unwrap_or_default().trim().to_string();
    let arch = line("proc/sys/kernel/arch"); // since Linux 6.1
    Host {
        name: line("proc/sys/kernel/hostname"),
        kernel: line("proc/sys/kernel/osrelease"),
        arch: if arch.is_empty() { std::env::consts::ARCH.to_string() } else { arch },
        cpus: u32::try_from(online_cpus(root).len()).unwrap_or(u32::MAX),
        memory_bytes: memory_bytes(&line("proc/meminfo")),
        page_bytes: procfs::page_size(),
        tick_ns: clock::tick_ns(),
        virtualization: virtualization(root),
        boot_id: line("proc/sys/kernel/random/boot_id"),
    }
}

/// CPUs that are online, ascending.
pub fn online_cpus(root: &Path) -> Vec<u32> {
    cpu_list(&text(&root.join("sys/devices/system/cpu/online")).unwrap_or_default())
}

/// Whether `/proc/kallsyms` shows addresses to this user, so that kernel functions can be named.
pub fn shows_kernel_symbols() -> bool {
    let Ok(file) = File::open("/proc/kallsyms") else { return false };
    // The first symbols are offsets of per-CPU data, of which some are 0 for everybody.
    let lines = BufReader::new(file).lines().map_while(Result::ok).take(50);
    lines.into_iter().any(|line| !line.starts_with("0000000000000000"))
}

/// Addresses between which the kernel's entries of interrupts lie; two zeros where they are not shown.
pub fn interrupt_entries(root: &Path) -> (u64, u64) {
    let Ok(symbols) = File::open(root.join("proc/kallsyms")) else { return (0, 0) };
    let mut from = 0;
    // Not the whole file: the kernel takes a tenth of a second to print it, and what is asked for stands at its begin.
    for line in BufReader::new(symbols).lines().map_while(Result::ok) {
        let address = || line.split(' ').next().and_then(|word| u64::from_str_radix(word, 16).ok()).unwrap_or(0);
        match line.rsplit(' ').next() {
            Some("__irqentry_text_start") => from = address(),
            Some("__irqentry_text_end") => return (from, address()),
            _ => {}
        }
    }
    (0, 0)
}

fn memory_bytes(meminfo: &str) -> u64 {
    let kib = field(meminfo, "MemTotal").and_then(|value| value.split(' ').next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// `none`, or who runs this guest: Xen's own file, the firmware's words, or what CPUID says.
fn virtualization(root: &Path) -> String {
    let line = |path: &str| text(&root.join(path)).map(|s| s.trim().to_string()).filter(|s| !s.is_empty());
    if let Some(hypervisor) = line("sys/hypervisor/type") {
        return hypervisor;
    }
    let cpuinfo = text(&root.join("proc/cpuinfo")).unwrap_or_default();
    let flagged = cpuinfo.lines().filter(|l| l.starts_with("flags")).any(|l| l.split(' ').any(|f| f == "hypervisor"));
    if !flagged {
        return "none".to_string();
    }
    let firmware: Vec<String> =
        ["sys_vendor", "product_name"].iter().filter_map(|name| line(&format!("sys/class/dmi/id/{name}"))).collect();
    if !firmware.is_empty() {
        return firmware.join(" ");
    }
    let vendor = if root == Path::new("/") { cpuid_vendor() } else { None };
    vendor.unwrap_or_else(|| "a hypervisor that does not say its name".to_string())
}

/// Name that the hypervisor leaves in CPUID leaf 0x40000000; microVMs have no firmware tables.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, unused_unsafe, reason = "an intrinsic, which newer compilers declare safe")]
fn cpuid_vendor() -> Option<String> {
    // SAFETY: every x86-64 CPU has CPUID; this leaf is asked only when the hypervisor flag is set.
    let leaf = unsafe { std::arch::x86_64::__cpuid(0x4000_0000) };
    let bytes = [leaf.ebx, leaf.ecx, leaf.edx].map(u32::to_le_bytes).concat();
    let name = String::from_utf8_lossy(&bytes).trim_matches(['\0', ' ']).to_string();
    match name.as_str() {
        "" => None,
        "KVMKVMKVM" => Some("KVM".to_string()),
        "Microsoft Hv" => Some("Hyper-V".to_string()),
        "XenVMMXenVMM" => Some("Xen".to_string()),
        "VMwareVMware" => Some("VMware".to_string()),
        "TCGTCGTCGTCG" => Some("QEMU without KVM".to_string()),
        _ => Some(name),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn cpuid_vendor() -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_root::FakeRoot;

    #[test]
    fn a_guest_is_described() {
        let root = FakeRoot::new();
        root.file("proc/sys/kernel/hostname", "web-1\n")
            .file("proc/sys/kernel/osrelease", "6.1.0-9-amd64\n")
            .file("proc/sys/kernel/random/boot_id", "b-1\n")
            .file("proc/meminfo", "MemTotal:        2048 kB\nMemFree: 1 kB\n")
            .file("proc/cpuinfo", "model name\t: x\nflags\t\t: fpu hypervisor lm\n")
            .file("sys/devices/system/cpu/online", "0,2-3\n")
            .file("sys/class/dmi/id/sys_vendor", "QEMU\n");
        let host = inventory(root.path());
        assert_eq!((host.name.as_str(), host.kernel.as_str(), host.cpus), ("web-1", "6.1.0-9-amd64", 3));
        assert_eq!((host.memory_bytes, host.virtualization.as_str()), (2 << 20, "QEMU"));
        assert_eq!(host.boot_id, "b-1");
    }

    #[test]
    fn a_word_in_the_model_name_is_no_hypervisor() {
        let root = FakeRoot::new();
        root.file("proc/cpuinfo", "model name\t: hypervisor 3000\nflags\t\t: fpu lm\n");
        assert_eq!(virtualization(root.path()), "none");
        root.file("proc/cpuinfo", "flags\t\t: fpu hypervisor\n");
        assert!(virtualization(root.path()).contains("does not say"));
        root.file("sys/hypervisor/type", "xen\n");
        assert_eq!(virtualization(root.path()), "xen");
    }

    #[test]
    fn entries_of_interrupts() {
        let root = FakeRoot::new();
        assert_eq!(interrupt_entries(root.path()), (0, 0));
        let symbols = "ffff0010 T a\nffff0020 T __irqentry_text_start\nffff0030 t b\nffff0040 T __irqentry_text_end\n";
        root.file("proc/kallsyms", symbols);
        assert_eq!(interrupt_entries(root.path()), (0xffff_0020, 0xffff_0040));
    }

    #[test]
    fn this_machine_is_described() {
        let host = inventory(Path::new("/"));
        assert!(host.cpus > 0 && host.memory_bytes > 0 && host.page_bytes >= 4096, "{host:?}");
        assert!(!host.kernel.is_empty() && !host.virtualization.is_empty(), "{host:?}");
    }
}
