// SPDX-License-Identifier: Apache-2.0
//! Threads that wait for each other's mutexes for good, while no request is seen to wait for them.

use super::Remark;
use crate::case::Case;
use crate::facts::standers::Standers;
use crate::judgement::deadlocks::look;

/// What there is to say about them.
pub(crate) fn remark(case: &Case) -> Option<Remark> {
    let standers = case.fact::<Standers>().ok()?;
    let deadlock = look(case, &standers).filter(|deadlock| deadlock.is_circle)?;
    let (short, pid) = (deadlock.short(), deadlock.keepers[0].pid());
    Some(Remark {
        headline: format!("{short}, but no request is seen to wait for that"),
        advice: None,
        detail: format!(
            "As the capture ended, {short}. That requests wait for it is not seen: what these threads do for the program is not done any \
             more (`eu-stack -p {pid}`)."
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn two_of_the_household() {
        let text = "meta host.arch=x86_64 length_ns=4e9 target.pids=[1]
            frame id=1 symbol=pthread_mutex_lock module=/lib/libc.so.6 kind=native
            stack id=1 frames=[1] complete=true
            standing pid=1 tid=2 comm=w wait_ns=3e9 syscall=202 args=[64,128,2,0] user_stack=1 owner=3
            standing pid=1 tid=3 comm=w wait_ns=3e9 syscall=202 args=[128,128,2,0] user_stack=1 owner=2";
        let said = |text: &str| remark(&Case::new(&parse(text).unwrap()));
        assert!(
            said(text)
                .unwrap()
                .headline
                .starts_with("two threads each stand before a mutex that the other has, a deadlock, but")
        );
        assert!(said(&text.replace("owner=2", "owner=0")).is_none());
    }
}
