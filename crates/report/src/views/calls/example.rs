// SPDX-License-Identifier: Apache-2.0
//! A few calls as they were made, in the form that strace has taught everybody: `epoll_wait(4, .., 1, 0) = 0`.

use std::collections::BTreeMap;

use diagnose::Case;
use diagnose::syscall::error_name;
use recording::tables::CallExample;

use super::super::thread_names::ThreadNames;
use crate::numbers;
use crate::section::{Block, Column};

/// Examples of one thread and call, and of all.
const OF_EACH: usize = 3;
const MOST: usize = 15;

/// Arguments of the calls that services make most, a letter each: `i` int, `s` size, `x` bits, `p` pointer.
const SHAPES: &[(&str, &str)] = &[
    ("epoll_wait", "ipii"),
    ("epoll_pwait", "ipiip"),
    ("epoll_pwait2", "ipipp"),
    ("epoll_ctl", "iiip"),
    ("poll", "psi"),
    ("ppoll", "pspp"),
    ("select", "ipppp"),
    ("pselect6", "ippppp"),
    ("read", "ips"),
    ("readv", "ipi"),
    ("pread64", "ipss"),
    ("recvfrom", "ipsxpp"),
    ("recvmsg", "ipx"),
    ("accept", "ipp"),
    ("accept4", "ippx"),
    ("write", "ips"),
    ("writev", "ipi"),
    ("pwrite64", "ipss"),
    ("sendto", "ipsxpi"),
    ("sendmsg", "ipx"),
    ("sendfile", "iips"),
    ("connect", "ipi"),
    ("close", "i"),
    ("nanosleep", "pp"),
    ("clock_nanosleep", "ixpp"),
    ("clock_gettime", "ip"),
    ("sched_yield", ""),
    ("futex", "pxippx"),
    ("io_uring_enter", "iiixp"),
];

/// Examples in the order of time.
pub fn list(case: &Case<'_>, names: &ThreadNames) -> Option<Block> {
    let mut shown: BTreeMap<(u32, u32, i32), usize> = BTreeMap::new();
    let mut rows: Vec<&CallExample> = case.recording.rows::<CallExample>().iter().collect();
    rows.sort_by_key(|row| row.t_ns);
    rows.retain(|row| {
        let count = shown.entry((row.pid, row.tid, row.syscall)).or_default();
        *count += 1;
        *count <= OF_EACH
    });
    let row = |row: &&CallExample| {
        let at = numbers::seconds(row.t_ns as f64 / 1e9);
        vec![at, names.full(row.pid, row.tid), text(&case.syscall(row.syscall), &row.args, row.result)]
    };
    let columns = vec![Column::right("at"), Column::left("thread"), Column::left("call")];
    let title = "A few calls as they were made".to_owned();
    let rows: Vec<_> = rows.iter().take(MOST).map(row).collect();
    (!rows.is_empty()).then_some(Block::Table { title, columns, rows })
}

/// One call. What an unknown call's registers mean is unknown too, so they are left out.
fn text(name: &str, args: &[u64], result: i64) -> String {
    let arguments = match SHAPES.iter().find(|shape| shape.0 == name) {
        Some((_, shape)) => shape.chars().zip(args).map(|(letter, value)| argument(letter, *value)).collect(),
        None => vec!["..".to_owned()],
    };
    // The kernel's errors are -1 to -4095.
    let result = if (-4095..0).contains(&result) { format!("-1 {}", error_name(result)) } else { result.to_string() };
    format!("{name}({}) = {result}", arguments.join(", "))
}

#[allow(clippy::cast_possible_truncation, reason = "an int argument is the low half of its register")]
fn argument(letter: char, value: u64) -> String {
    match letter {
        'i' => (value as u32).cast_signed().to_string(),
        's' => value.to_string(),
        'x' if value == 0 => "0".to_owned(),
        'x' => format!("{:#x}", value as u32),
        _ if value == 0 => "NULL".to_owned(),
        _ => "..".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_strace_writes_them() {
        assert_eq!(text("epoll_wait", &[4, 77, 1, 0xffff_ffff, 0, 0], 1), "epoll_wait(4, .., 1, -1) = 1");
        assert_eq!(
            text("recvfrom", &[5, 77, 4096, 0x40, 0, 0], -11),
            "recvfrom(5, .., 4096, 0x40, NULL, NULL) = -1 EAGAIN"
        );
        assert_eq!(text("sched_yield", &[9, 9], 0), "sched_yield() = 0");
        assert_eq!(text("bpf", &[1, 2, 3], 7), "bpf(..) = 7");
    }
}
