// SPDX-License-Identifier: Apache-2.0
//! How to look into a process that loses time.

use crate::facts::host::Loser;
use crate::wording::word;

/// The command that diagnoses it; empty for threads of the kernel.
pub fn command(p: &Loser) -> String {
    match p.pid {
        _ if p.is_kernel() => String::new(),
        0 => format!("sudo wakewalk diagnose --comm {}", word(&p.comm)),
        pid => format!("sudo wakewalk diagnose --pid {pid}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_or_all_of_a_name() {
        let command = |pid, comm: &str| command(&Loser { pid, comm: comm.into(), ..Loser::default() });
        assert_eq!(command(5, "java"), "sudo wakewalk diagnose --pid 5");
        assert_eq!(command(0, "kernel threads"), "");
        assert_eq!(command(0, "it's"), "sudo wakewalk diagnose --comm \"it's\"");
    }
}
