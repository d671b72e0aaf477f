// SPDX-License-Identifier: Apache-2.0
//! One file a command.

pub mod bisect;
pub mod diagnose;
pub mod diff;
pub mod doctor;
pub mod explain;
pub mod host;
mod kept;
pub mod load;
pub mod serve;
pub mod wait_and_become;
