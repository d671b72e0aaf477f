// SPDX-License-Identifier: Apache-2.0
//! What no wait shows: requests that stand in a queue inside an event loop, or of goroutines.

use crate::answer::{Gap, Unseen};
use crate::case::Case;
use crate::facts::waiting::Waiting;
use crate::judgement::one_each;
use crate::walk::Walk;

/// That a pool inside the program cannot be seen, where that could be half of an answer: clients ask the target, the target
/// asks somebody else, and none of its threads serves one client at a time.
pub(crate) fn unseen(case: &Case) -> Option<Gap> {
    let (walk, waiting) = (case.fact::<Walk>().ok()?, case.fact::<Waiting>().ok()?);
    let asks = waiting.chains.iter().any(|chain| !chain.links[0].who.peer.is_empty());
    // Threads that take one request at a time are a pool that is seen.
    (waiting.serves && asks && !walk.has_serving_threads() && one_each::threads(case).is_none()).then(|| {
        let gap = Gap::new(
            "pool-exhausted",
            Unseen::InsideTheProgram,
            "its threads serve many clients each (an event loop, or goroutines): requests that queue inside the program, as \
             for a connection of a pool, wait where the kernel sees nothing; compare the number of its connections to \
             whom it waits for with that of its clients",
        );
        gap.of_cause("pool-exhausted")
    })
}
