// SPDX-License-Identifier: Apache-2.0
//! Event loops in general use, told from the functions that ask the kernel for events.
//!
//! All of them wait for the next event or the next timer, and ask with timeout 0 only while the program has
//! something queued that is to run at once. So a loop that asks with timeout 0 for ever is not the place to mend:
//! what keeps queueing is.

use super::code::Code;

/// Functions that run a loop of their own inside one of its callbacks, until a program has ended that they started.
const INSIDE: [&str; 1] = ["node::SyncProcessRunner::"];

/// Whether a thread with these functions on its stack waits in a loop inside its loop.
pub fn is_inside<'a>(stack: impl IntoIterator<Item = &'a Code>) -> bool {
    stack.into_iter().any(|code| INSIDE.iter().any(|name| code.symbol.starts_with(name)))
}

/// An event loop.
#[derive(Debug, PartialEq, Eq)]
pub struct EventLoop {
    /// Whose it is.
    pub name: &'static str,
    /// Why it asks with timeout 0, as the rest of a sentence.
    pub because: &'static str,
    /// What may keep it from waiting, in a few words.
    pub briefly: &'static str,
    /// The same in a sentence's half.
    pub look_for: &'static str,
    /// What names the function that does it.
    pub found_by: &'static str,
    /// Beginnings of its functions' names.
    symbols: &'static [&'static str],
    /// Beginnings of file names of its modules.
    modules: &'static [&'static str],
}

const QUEUED: &str = "because the program always has work queued that is to run at once";

static KNOWN: &[EventLoop] = &[
    EventLoop {
        name: "libuv",
        because: QUEUED,
        briefly: "a setImmediate, nextTick or zero-delay timer loop",
        look_for: "setImmediate or process.nextTick that schedules itself again, timers without delay, idle handles, or \
                   uv_run with UV_RUN_NOWAIT in a loop",
        found_by: "in Node.js, node --cpu-prof names the function",
        symbols: &["uv__io_poll", "uv_run"],
        modules: &["libuv.so"],
    },
    EventLoop {
        name: "libevent",
        because: QUEUED,
        briefly: "event_active or a timer without delay in a loop",
        look_for: "event_active in a loop, timers without delay, or event_base_loop with EVLOOP_NONBLOCK in a loop",
        found_by: "perf names the callbacks that run",
        symbols: &["event_base_loop", "event_base_dispatch"],
        modules: &["libevent"],
    },
    EventLoop {
        name: "libev",
        because: QUEUED,
        briefly: "an idle watcher, ev_feed_event or a timer without delay",
        look_for: "ev_idle watchers that stay active, ev_feed_event in a loop, timers without delay, or ev_run with \
                   EVRUN_NOWAIT in a loop",
        found_by: "perf names the callbacks that run",
        symbols: &["ev_run"],
        modules: &["libev.so"],
    },
    EventLoop {
        name: "GLib",
        because: QUEUED,
        briefly: "an idle source that stays, or a timeout of 0",
        look_for: "idle sources that never return G_SOURCE_REMOVE, timeouts of 0, or g_main_context_iteration that may not \
                   block in a loop",
        found_by: "perf names the callbacks that run",
        symbols: &["g_main_context_iterat", "g_main_loop_run"],
        modules: &["libglib-2.0"],
    },
    EventLoop {
        name: "Tokio",
        because: QUEUED,
        briefly: "a task that wakes itself (yield_now, wake_by_ref)",
        look_for: "tasks that wake themselves: yield_now in a loop, a hand-written poll that calls wake_by_ref and returns \
                   Pending, or try_recv in a loop",
        found_by: "tokio-console names the task",
        symbols: &["tokio::runtime::", "mio::poll::", "mio::sys::"],
        modules: &[],
    },
    EventLoop {
        name: "the JDK's selector",
        because: QUEUED,
        briefly: "selectNow, or a task that submits itself again",
        look_for: "selectNow in a loop, tasks that submit themselves again (execute on a Netty event loop), or wakeup in a \
                   loop",
        found_by: "jstack or async-profiler names the task",
        symbols: &["Java_sun_nio_ch_EPoll_wait"],
        modules: &["libnio.so"],
    },
    EventLoop {
        name: "Python",
        because: "because the program passes 0, or always has work queued for its asyncio loop",
        briefly: "in asyncio a call_soon or sleep(0) loop, else poll(0)",
        look_for: "in asyncio, call_soon that schedules itself again, await asyncio.sleep(0) in a loop, or timers without \
                   delay; in a loop of its own, poll(0) or select with timeout 0",
        found_by: "py-spy dump names the function",
        symbols: &["_PyEval_EvalFrame", "PyEval_EvalFrame"],
        modules: &["python3", "libpython3"],
    },
];

/// The event loop among the functions of a stack, innermost first.
pub fn of<'a>(stack: impl IntoIterator<Item = &'a Code>) -> Option<&'static EventLoop> {
    let known = |code: &Code| {
        KNOWN.iter().find(|l| {
            let symbol = code.symbol.trim_start_matches('<');
            l.symbols.iter().any(|s| symbol.starts_with(s)) || l.modules.iter().any(|m| code.file().starts_with(m))
        })
    };
    stack.into_iter().find_map(known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtimes::Part;

    #[test]
    fn told_from_the_asking_stack() {
        let name = |frames: &[(&str, &str)]| {
            let code = |(symbol, module): &(&str, &str)| {
                let [symbol, module, kind, source] = [symbol, module, "native", ""].map(str::to_string);
                Code { symbol, module, offset: 0, kind, source, part: Part::Own }
            };
            of(&frames.iter().map(code).collect::<Vec<_>>()).map(|l| l.name)
        };
        let libc = ("epoll_wait", "libc.so.6");
        assert_eq!(name(&[libc, ("uv__io_poll", "node"), ("uv_run", "node")]), Some("libuv"));
        assert_eq!(name(&[libc, ("", "libevent-2.1.so.7"), ("event_base_loop", "svc")]), Some("libevent"));
        assert_eq!(name(&[libc, ("", "libev.so.4")]), Some("libev"));
        assert_eq!(name(&[libc, ("<mio::poll::Poll>::poll", "svc")]), Some("Tokio"));
        // Inside Python, the inner loop is the one that asks.
        assert_eq!(name(&[libc, ("", "libuv.so.1"), ("_PyEval_EvalFrameDefault", "python3.11")]), Some("libuv"));
        assert_eq!(name(&[libc, ("select_epoll_poll", "python3.11")]), Some("Python"));
        assert_eq!(name(&[libc, ("reactor", "svc"), ("main", "svc")]), None);
    }
}
