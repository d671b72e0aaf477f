// SPDX-License-Identifier: Apache-2.0
//! Ledgers: where the time went. Lines add up to the wall time; what does not is shown as coverage.

pub mod blocked;
pub mod connections;
pub mod file_system;
pub mod kernel_lock;
pub mod largest;
pub mod threads;
