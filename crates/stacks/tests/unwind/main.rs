// SPDX-License-Identifier: Apache-2.0
//! Stacks of real programs: a thread is stopped, its registers and stack are read, and the names
//! that come out must lead to the function it began with.

mod nonsense;
mod programs;
mod stop;

use std::{os::unix::fs::FileExt, process::Command};

use programs::{c, is_there};
use stop::{Sampled, start};
use testing::need;
use wakewalk_stacks::{Snapshot, Stacks};

/// Samples of each program. One in a hundred may hit an instruction that cannot be unwound (the
/// first of a Go function); more than [`MAX_BAD`] is an error.
const SAMPLES: usize = 60;
const MAX_BAD: usize = 3;

const READY: &str = r#"puts("ready"); fflush(stdout);"#;

#[track_caller]
fn check(samples: &[Sampled], what: impl Fn(&Sampled) -> bool) {
    assert_eq!(samples.len(), SAMPLES, "the program could not be sampled");
    let bad: Vec<&Sampled> = samples.iter().filter(|s| !what(s)).collect();
    let show = |s: &&Sampled| format!("complete {}: {:?}", s.complete, s.names);
    eprintln!("{} of {SAMPLES} as expected; for example {:?}", SAMPLES - bad.len(), samples[SAMPLES / 2].names);
    assert!(
        bad.len() <= MAX_BAD,
        "{} bad samples, such as\n{}",
        bad.len(),
        bad.iter().take(3).map(show).collect::<Vec<_>>().join("\n")
    );
}

#[test]
fn c_without_frame_pointers() {
    let program = c(&format!("int main(void) {{ {READY} spin_forever(); }}"), &["-g"]);
    let samples = start(&mut program.command()).sample(SAMPLES, 16 << 10);
    check(&samples, |s| {
        s.complete && s.calls(&["spin_forever", "main"]) && s.names.last().is_some_and(|n| n == "_start")
    });
    check(&samples, |s| s.calls(&["spin_leaf", "spin_middle", "spin_forever"]));
    let main = samples[0].frames.iter().find(|f| f.symbol == "main").unwrap();
    assert_eq!((main.module.as_str(), main.kind.as_str()), ("program", "native"));
    assert!(main.source.starts_with("program.c:") && main.offset > 0, "{main:?}");
    assert!(samples[0].frames.iter().any(|f| f.module.starts_with("libc")));
}

#[test]
fn c_without_an_index_of_its_functions() {
    let program = c(&format!("int main(void) {{ {READY} spin_forever(); }}"), &["-Wl,--no-eh-frame-hdr"]);
    let samples = start(&mut program.command()).sample(SAMPLES, 16 << 10);
    check(&samples, |s| s.complete && s.calls(&["spin_forever", "main"]) && s.has("_start"));
}

#[test]
fn a_deleted_and_stripped_program() {
    let program = c(&format!("int main(void) {{ {READY} spin_forever(); }}"), &["-s"]);
    let running = start(&mut program.command());
    program.delete();
    let samples = running.sample(SAMPLES, 16 << 10);
    check(&samples, |s| s.complete && s.names.len() >= 5);
    check(&samples, |s| s.frames[0].module == "program" && s.frames[0].offset > 0 && s.names[0].is_empty());
}

#[test]
fn a_short_copy_of_the_stack_is_incomplete() {
    let program = c(&format!("int main(void) {{ {READY} spin_forever(); }}"), &[]);
    let samples = start(&mut program.command()).sample(SAMPLES, 64);
    check(&samples, |s| !s.complete && s.has("spin_leaf") && !s.has("_start"));
}

#[test]
fn a_thread_begins_in_clone() {
    let main = format!(
        "#include <pthread.h>
        static void *body(void *p) {{ {READY} spin_forever(); return p; }}
        int main(void) {{ pthread_t t; pthread_create(&t, 0, body, 0); pthread_join(t, 0); }}"
    );
    let samples = start(&mut c(&main, &[]).command()).sample(SAMPLES, 16 << 10);
    check(&samples, |s| s.complete && s.calls(&["spin_forever", "body"]) && !s.has("main"));
}

#[test]
fn the_caller_of_a_system_call_wrapper() {
    let main = format!(
        "#include <poll.h>
        __attribute__((noinline)) int waiter(int n) {{ return poll(0, 0, 0) + n; }}
        int main(void) {{ {READY} for (;;) sink += waiter(1); }}"
    );
    let samples = start(&mut c(&main, &[]).command()).sample(SAMPLES, 16 << 10);
    check(&samples, |s| s.complete && s.has("main"));
    let in_poll = samples.iter().filter(|s| s.names[0].ends_with("poll")).count();
    assert!(in_poll > SAMPLES / 2, "{in_poll} samples in poll");
    check(&samples, |s| !s.names[0].ends_with("poll") || s.names[1] == "waiter");
}

#[test]
fn through_a_signal_handler() {
    let main = format!(
        "#include <signal.h>
        static void handler(int n) {{ sink += n; {READY} spin_forever(); }}
        __attribute__((noinline)) void interrupted(void) {{ raise(SIGUSR1); sink++; }}
        int main(void) {{ signal(SIGUSR1, handler); interrupted(); }}"
    );
    let samples = start(&mut c(&main, &[]).command()).sample(SAMPLES, 16 << 10);
    check(&samples, |s| s.complete && s.calls(&["spin_forever", "handler"]) && s.calls(&["interrupted", "main"]));
}

/// Not a test: what [`rust`] runs and samples.
#[test]
#[ignore = "not a test: what `rust` runs, until it is killed"]
fn spinning() {
    assert!(std::env::var_os("SPIN").is_some(), "only to be started by the test `rust`");
    println!("ready");
    outer_of_rust(&mut 1);
}

#[inline(never)]
fn outer_of_rust(n: &mut u64) {
    while std::hint::black_box(*n) != 0 {
        inner_of_rust(n);
    }
}

#[inline(never)]
fn inner_of_rust(n: &mut u64) {
    for i in 0..100_000_u64 {
        *n = std::hint::black_box(n.wrapping_mul(i | 1) | 1);
    }
}

#[test]
fn rust() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "--nocapture", "spinning"]).env("SPIN", "1");
    let samples = start(&mut command).sample(SAMPLES, 16 << 10);
    check(&samples, |s| {
        s.complete
            && s.calls(&["unwind::inner_of_rust", "unwind::outer_of_rust"])
            && s.has("<std::sys::thread::unix::Thread>::new::thread_start")
            && s.calls(&["start_thread", "clone3"])
    });
    let leaf = samples.iter().flat_map(|s| &s.frames).find(|f| f.symbol == "unwind::inner_of_rust").unwrap();
    assert!(leaf.source.contains(".rs:"), "{leaf:?}");
}

/// Run without preemption: every 10 ms that would be a moment in the scheduler.
const GO_MAIN: &str = r#"package main
import "fmt"
var sink int
//go:noinline
func inner(n int) int { s := 0; for i := 0; i < 100000; i++ { s += i * n ^ s }; return s }
//go:noinline
func outer() { for { sink += inner(sink & 7) + 1 } }
func main() { fmt.Println("ready"); outer() }
"#;

const GO_STACK: [&str; 5] = ["main.inner", "main.outer", "main.main", "runtime.main", "runtime.goexit"];

/// `main.inner` has no frame, so that its caller is not in the chain of frame pointers.
#[test]
fn go() {
    need!(is_there("go"));
    for flags in [&[][..], &["-ldflags=-s -w"], &["-buildmode=pie"]] {
        let samples =
            start(programs::go(GO_MAIN, flags).command().env("GODEBUG", "asyncpreemptoff=1")).sample(SAMPLES, 16 << 10);
        check(&samples, |s| s.complete && s.calls(&GO_STACK));
        let outer = samples.iter().flat_map(|s| &s.frames).find(|f| f.symbol == "main.outer").unwrap();
        assert_eq!((outer.source.as_str(), outer.kind.as_str()), ("main.go:7", "native"));
    }
}

#[test]
fn go_calling_c() {
    need!(is_there("go"));
    let main = format!(
        "package main\n/*\n#cgo CFLAGS: -O2 -fomit-frame-pointer\n{}\n*/\nimport \"C\"\nimport \"fmt\"\n\
        //go:noinline\nfunc reactor() {{ C.spin_forever() }}\n\
        func main() {{ fmt.Println(\"ready\"); reactor() }}\n",
        programs::C_SPIN
    );
    for flags in [&[][..], &["-ldflags=-s -w"], &["-buildmode=pie"]] {
        let samples = start(&mut programs::go(&main, flags).command()).sample(SAMPLES, 16 << 10);
        check(&samples, |s| s.complete && s.calls(&GO_TO_C));
        // Stripped, the C functions have no names.
        let stripped = flags == ["-ldflags=-s -w"];
        check(&samples, |s| stripped || s.calls(&["spin_leaf", "spin_middle", "spin_forever"]));
    }
}

const GO_TO_C: [&str; 6] =
    ["runtime.cgocall", "main._Cfunc_spin_forever", "main.reactor", "main.main", "runtime.main", "runtime.goexit"];

const NODE: &str = "
    function spinHot(n) { let s = 0; for (let i = 0; i < 1e6; i++) s = (s + i * n) % 1000003; return s; }
    function spinOuter() { for (;;) globalThis.sink = spinHot(7) + spinHot(3); }
    for (let i = 0; i < 100; i++) spinHot(i);
    console.log('ready'); spinOuter();";

#[test]
fn node_with_a_perf_map() {
    need!(is_there("node"));
    // Node leaves a log where it runs.
    let folder = tempfile::tempdir().unwrap();
    let running = start(Command::new("node").args(["--perf-basic-prof", "-e", NODE]).current_dir(&folder));
    let map = format!("/tmp/perf-{}.map", running.pid());
    let samples = running.sample(SAMPLES, 32 << 10);
    let _ = std::fs::remove_file(map);
    check(&samples, |s| s.complete && s.has("node::Start") && s.has("_start"));
    check(&samples, |s| {
        s.frames.iter().any(|f| f.symbol.contains("spinHot") | f.symbol.contains("spinOuter") && f.kind == "jit")
    });
}

/// Its own pid and mount namespace, as in a container: the map is named by the inner pid and is
/// not in this program's `/tmp`; the process is gone when it is read.
#[test]
fn node_in_a_container() {
    need!(is_there("node"));
    let script = "mount -t tmpfs none /tmp && cd /tmp && exec node --perf-basic-prof -e \"$0\"";
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script, NODE]);
    let samples = start(&mut unshare).inner().sample(SAMPLES, 32 << 10);
    check(&samples, |s| s.complete && s.has("node::Start") && s.has("_start"));
    check(&samples, |s| s.frames.iter().any(|f| f.symbol.contains("spin") && f.kind == "jit"));
}

#[test]
fn node_without_a_perf_map() {
    need!(is_there("node"));
    let samples = start(Command::new("node").args(["-e", NODE])).sample(SAMPLES, 32 << 10);
    check(&samples, |s| s.complete && s.has("node::Start") && s.has("_start"));
    check(&samples, |s| s.frames.iter().any(|f| f.kind == "jit" && f.module == "[jit]" && f.symbol.is_empty()));
    // Where the functions are is known, and the hot one is in one place: within a few KB.
    check(&samples, |s| s.frames.iter().filter(|f| f.kind == "jit").all(|f| f.offset > 0));
    let mut leaves: Vec<u64> =
        samples.iter().filter_map(|s| s.frames.first()).filter(|f| f.kind == "jit").map(|f| f.offset).collect();
    leaves.sort_unstable();
    let middle = leaves[leaves.len() / 2];
    let near = leaves.iter().filter(|at| at.abs_diff(middle) < 2048).count();
    assert!(near * 2 > leaves.len(), "{near} of {} samples are near {middle:#x}", leaves.len());
}

/// The pid means another program after `exec`, and nothing of the first may be left.
#[test]
fn a_program_that_becomes_another() {
    let first =
        c(&format!("#include <unistd.h>\nint main(int n, char **v) {{ {READY} getchar(); execv(v[1], v); }}"), &[]);
    let second = c("int main(void) { spin_forever(); }", &[]);
    let mut running = start(first.command().arg(&second.path).stdin(std::process::Stdio::piped()));
    let mut stacks = Stacks::new();
    stacks.see(running.pid());
    running.close_stdin();
    stacks.forget(running.pid());
    let samples = running.sample_into(stacks, SAMPLES, |stacks, pid, regs, mem| {
        let mut stack = vec![0; 16 << 10];
        let length = mem.read_at(&mut stack, regs.sp).unwrap_or(0);
        stacks.user(&Snapshot { pid, regs: *regs, stack: &stack[..length] })
    });
    check(&samples, |s| s.complete && s.calls(&["spin_forever", "main"]));
}

#[test]
fn python() {
    need!(is_there("python3"));
    let script = "def f(n):\n s = 0\n for i in range(n): s += i * i % 7\n return s\nprint('ready', flush=True)\nwhile True: f(1000)\n";
    let samples = start(Command::new("python3").args(["-c", script])).sample(SAMPLES, 16 << 10);
    check(&samples, |s| s.complete && s.has("Py_BytesMain") && s.has("_start"));
}
