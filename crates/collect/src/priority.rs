// SPDX-License-Identifier: Apache-2.0
//! Standing back: loading programs and naming functions are bursts of CPU time, and on a full host they would be taken
//! from the service that is observed, all within one percent of its requests.

#![allow(unsafe_code, reason = "no crate at hand wraps setpriority(2)")]

/// Nice value of the thread that captures: on a full CPU it gets a tenth of what others get, and it needs less.
const NICE: libc::c_int = 10;

/// Lets everybody else go first. Lowering one's own priority needs no privilege and cannot fail in a way that matters.
pub fn stand_back() {
    // SAFETY: no pointers; 0 means the calling thread, on Linux.
    unsafe {
        if libc::getpriority(libc::PRIO_PROCESS, 0) < NICE {
            libc::setpriority(libc::PRIO_PROCESS, 0, NICE);
        }
    }
}
