// SPDX-License-Identifier: Apache-2.0
//! The kernel's own look-up of names, against the list of all symbols that it prints.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::mem::MaybeUninit;

use testing::{given, need};
use wakewalk_collect::doctor;
use wakewalk_collect::probes::names::KernelNames;

#[test]
fn functions_have_the_names_of_the_list() {
    need!(given(doctor::examine().bpf, "the kernel refuses BPF"));
    let list = fs::read_to_string("/proc/kallsyms").unwrap();
    let mut functions: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    for line in list.lines() {
        let [address, kind, name] = line.split_whitespace().take(3).collect::<Vec<_>>()[..] else { continue };
        if kind.eq_ignore_ascii_case("t") {
            functions.entry(u64::from_str_radix(address, 16).unwrap()).or_default().push(name);
        }
    }
    functions.remove(&0);
    need!(given(!functions.is_empty(), "kallsyms shows no addresses to this user"));
    let mut storage = MaybeUninit::uninit();
    let mut names = KernelNames::load(&mut storage).unwrap();
    // BPF programs come and go, and what is used at boot only is gone.
    let stays = |names: &&Vec<&str>| !names.iter().any(|name| name.starts_with("bpf_prog_"));
    let asked: Vec<(&u64, &Vec<&str>)> = functions.iter().filter(|(_, names)| stays(names)).step_by(97).collect();
    let right = asked.iter().filter(|(at, known)| names.of(**at).is_some_and(|name| known.contains(&&*name))).count();
    assert!(asked.len() > 100 && right as f64 >= 0.98 * asked.len() as f64, "{right} of {}", asked.len());
    assert_eq!(names.of(1), None);
}
