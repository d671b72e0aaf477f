// SPDX-License-Identifier: Apache-2.0
//! Names of kernel functions, one look-up in the kernel each.

use std::mem::MaybeUninit;

use anyhow::Result;
use libbpf_rs::{OpenObject, ProgramInput};

use super::refusal;

mod skel {
    #![allow(missing_docs, clippy::all, clippy::pedantic, clippy::unwrap_used, clippy::expect_used)]
    include!(concat!(env!("OUT_DIR"), "/names.skel.rs"));
}

/// The loaded program. It hangs on no hook: it runs when it is asked.
pub struct KernelNames<'o>(skel::NamesSkel<'o>);

impl<'o> KernelNames<'o> {
    /// Loads the program.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn load(storage: &'o mut MaybeUninit<OpenObject>) -> Result<Self> {
        let open = refusal::open(skel::NamesSkelBuilder::default(), storage, "the program of names")?;
        refusal::load(open, "the kernel refused the program of names").map(Self)
    }

    /// The function that holds an address; `None` = no function does.
    pub fn of(&mut self, address: u64) -> Option<String> {
        self.0.maps.bss_data.as_deref_mut()?.address = address;
        self.0.progs.name_address.test_run(ProgramInput::default()).ok()?;
        let name = &self.0.maps.bss_data.as_deref()?.name;
        let name: Vec<u8> = name.iter().map(|c| c.cast_unsigned()).take_while(|c| *c != 0).collect();
        function(&String::from_utf8_lossy(&name))
    }
}

/// The function's name alone. Without a name, the kernel prints the address.
fn function(printed: &str) -> Option<String> {
    let name = printed.split(" [").next()?;
    (!name.is_empty() && !name.starts_with("0x")).then(|| name.to_string())
}

#[cfg(test)]
mod tests {
    use super::function;

    #[test]
    fn modules_are_left_out_and_addresses_are_no_names() {
        assert_eq!(function("vfs_read").as_deref(), Some("vfs_read"));
        assert_eq!(function("veth_xmit [veth]").as_deref(), Some("veth_xmit"));
        assert_eq!((function("0x1"), function("")), (None, None));
    }
}
