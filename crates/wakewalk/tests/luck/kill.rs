// SPDX-License-Identifier: Apache-2.0
//! Captures that are cut short: by Ctrl-C in their first moments, by SIGKILL at any moment.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use testing::{given, need};

use crate::tool::{Running, WAKEWALK, kernel_allows, poll, read, send, text, wakewalk};

const BPFTOOL: &str = "/usr/sbin/bpftool";
/// Moments at which a capture is killed, and how many captures run at once.
const MOMENTS: usize = 50;
const AT_ONCE: usize = 4;

fn start(args: &[&str], pid: &str, folder: &Path) -> Child {
    let mut command = Command::new(WAKEWALK);
    command.args(["diagnose", "--json", "--pid", pid, "--save"]).arg(folder).args(args);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// Ctrl-C as soon as the capture has begun. A loaded machine may hear it late: then once more.
#[test]
fn an_interrupt_in_the_first_moment_says_how_short_it_was() {
    need!(kernel_allows());
    let target = Running::sleep();
    let short = (0..10).find_map(|_| {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("recording");
        let child = start(&["--for", "300s"], &target.pid(), &folder);
        poll("a first table", || folder.join("process.arrows").exists().then_some(()));
        send("INT", child.id());
        let v = read(&child.wait_with_output().unwrap());
        assert_eq!(v.window.ended, "interrupted");
        (v.window.seconds < 0.9).then_some(v)
    });
    let v = short.expect("ten interrupts, and all came late");
    assert_eq!(v.verdict, "not-determined");
    assert!(v.headline.contains("interrupted after") && v.headline.contains("too short"), "{}", v.headline);
    assert!(v.detail.contains(&format!("`sudo wakewalk diagnose --pid {} --for 10s`", target.pid())), "{}", v.detail);
    assert!(v.ledger.threads["wall"] > 0.0, "what it saw is shown");
}

/// What a kill left: programs and links that must go, and whether the recording was still open.
struct Left {
    ids: BTreeSet<(String, String)>,
    readable: bool,
    sealed: bool,
}

/// Kills a capture after `moment` and reads what it left.
fn killed(moment: Duration, pid: &str) -> Left {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("recording");
    let mut child = start(&["--for", "1s", "--calls", "always"], pid, &folder);
    sleep(moment);
    send("STOP", child.id()); // held still, so that its descriptors are those that it is killed with
    let ids = held(child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    let replay = wakewalk(&["diagnose", "--json", "--from", folder.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&replay.stderr).into_owned();
    if !folder.join("meta.json").exists() {
        assert!(replay.status.code() == Some(2) && said.contains("holds no recording"), "{moment:?}: {said}");
        return Left { ids, readable: false, sealed: false };
    }
    let v = read(&replay);
    let sealed = text(&folder.join("meta.json")).contains("\"sealed\": true");
    assert_eq!(v.gaps.iter().any(|gap| gap.what == "the end"), !sealed, "{moment:?}: {:?}", v.gaps);
    Left { ids, readable: true, sealed }
}

/// Programs and links that a process holds descriptors of.
fn held(pid: u32) -> BTreeSet<(String, String)> {
    let entries = fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten().flatten();
    let id = |text: String| {
        let line = |name: &str| text.lines().find_map(|l| l.strip_prefix(name)).map(|id| id.trim().to_string());
        let link = line("link_id:").map(|id| ("link".to_string(), id));
        link.or_else(|| line("prog_id:").map(|id| ("prog".to_string(), id)))
    };
    entries.filter_map(|entry| id(text(&entry.path()))).collect()
}

/// Ids of all programs or links that the kernel has.
fn loaded(kind: &str) -> BTreeSet<(String, String)> {
    let out = Command::new(BPFTOOL).args(["-j", kind, "show"]).output().unwrap();
    let rows: Vec<HashMap<String, serde_json::Value>> = serde_json::from_slice(&out.stdout).unwrap_or_default();
    rows.iter().filter_map(|row| Some((kind.to_string(), row.get("id")?.to_string()))).collect()
}

/// Another number in each run: the moments that matter are not known.
fn random(below: u64) -> u64 {
    RandomState::new().build_hasher().finish() % below
}

#[test]
fn sigkill_at_any_moment_leaves_a_readable_recording_and_nothing_in_the_kernel() {
    need!(kernel_allows());
    need!(given(Path::new(BPFTOOL).exists(), "no bpftool, so what is left in the kernel cannot be seen"));
    let (target, next, all) = (Running::spin(), AtomicUsize::new(0), Mutex::new(Vec::new()));
    scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while next.fetch_add(1, Ordering::Relaxed) < MOMENTS {
                    let left = killed(Duration::from_millis(random(2500)), &target.pid());
                    all.lock().unwrap().push(left);
                }
            });
        }
    });
    let all = all.into_inner().unwrap();
    let ids: BTreeSet<_> = all.iter().flat_map(|left| left.ids.clone()).collect();
    let count = |wanted: fn(&Left) -> bool| all.iter().filter(|left| wanted(left)).count();
    let (readable, sealed) = (count(|l| l.readable), count(|l| l.sealed));
    println!("{} kills: {readable} recordings, {sealed} of them sealed; {} programs and links", all.len(), ids.len());
    assert!(
        all.len() == MOMENTS && count(|l| !l.ids.is_empty()) >= 5 && readable >= 5,
        "hardly any kill hit a capture"
    );
    poll("kernel as it was before", || {
        let now: BTreeSet<_> = loaded("prog").into_iter().chain(loaded("link")).collect();
        ids.is_disjoint(&now).then_some(())
    });
}
