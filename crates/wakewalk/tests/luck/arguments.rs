// SPDX-License-Identifier: Apache-2.0
//! What was typed makes no sense.

use crate::tool::{refused, wakewalk};

#[test]
fn what_is_no_process_port_or_time_is_told_with_what_is() {
    for pid in ["abc", "0", "-5", "99999999999", "4242x", ""] {
        let said = refused(&["diagnose", &format!("--pid={pid}")]);
        assert!(said.contains(&format!("`{pid}` is no value for --pid")), "{said}");
        assert!(said.contains("4242") && said.contains("ps -e") && said.contains("--comm"), "{said}");
    }
    for port in ["http", "0", "65536"] {
        let said = refused(&["diagnose", "--port", port]);
        assert!(said.contains("from 1 to 65535") && said.contains("ss -ltnp"), "{said}");
    }
    let said = refused(&["diagnose", "--pid", "1", "--for", "soon"]);
    assert!(said.contains("`soon`") && said.contains("10s"), "{said}");
}

#[test]
fn what_was_typed_does_not_act_on_the_terminal() {
    let hostile = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}1m\u{202e}";
    for how in ["--comm", "--unit", "--cgroup", "--from", "--pid"] {
        let said = refused(&["diagnose", how, hostile]);
        assert!(!said.contains(|c: char| c.is_control() || c == '\u{202e}'), "{said:?}");
        assert!(said.contains("\\x1b[2J"), "{said}");
    }
}

#[test]
fn help_is_no_failure() {
    for args in [&["--help"][..], &["diagnose", "--help"], &["--version"]] {
        let out = wakewalk(args);
        assert!(out.status.success() && !out.stdout.is_empty() && out.stderr.is_empty());
    }
    let out = wakewalk(&["diagnose", "--nonsense"]);
    assert_eq!(out.status.code(), Some(2));
}
