// SPDX-License-Identifier: Apache-2.0
//! Timers of event loops, told from the function that runs what was to be done after a while.

use super::code::Code;

/// Beginnings of names of functions that run the program's timers, and what the program calls those.
const KNOWN: &[(&str, &str)] = &[
    ("node::Environment::RunTimers", "setTimeout or setInterval"),
    ("uv__run_timers", "a timer of libuv"),
    ("timers_reify", "a timer of libev"),
    ("timeout_process", "a timer of libevent"),
    ("g_timeout_dispatch", "a timeout of GLib"),
    ("ngx_event_expire_timers", "a timer of nginx"),
    ("boost::asio::detail::wait_handler", "a timer of Asio"),
    ("processTimeEvents", "a time event of Redis"),
];

/// What ran the code at the top of a stack, if it was a timer: its place in the stack and its name.
pub fn of(stack: &[&Code]) -> Option<(usize, &'static str)> {
    stack.iter().enumerate().find_map(|(at, code)| {
        let known = KNOWN.iter().find(|(symbol, _)| code.symbol.starts_with(symbol))?;
        Some((at, known.1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Case;
    use crate::facts::stacks::Stacks;

    #[test]
    fn the_innermost_one_that_is_known() {
        let text = "frame id=1 symbol=uv__try_write\nframe id=2 symbol=\"node::Environment::RunTimers(uv_timer_s*)\"
            frame id=3 symbol=uv__run_timers\nstack id=1 frames=[1,2,3]";
        let recording = recording::text::parse(text).unwrap();
        let stacks = Case::new(&recording).fact::<Stacks>().unwrap();
        let stack: Vec<&Code> = stacks.frames(1).collect();
        assert_eq!(of(&stack), Some((1, "setTimeout or setInterval")));
        assert_eq!(of(&stack[..1]), None);
    }
}
