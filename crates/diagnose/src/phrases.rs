// SPDX-License-Identifier: Apache-2.0
//! How facts read, where several rules and views say the same: facts have numbers and names, the sentences and commands are here.

pub mod chain;
pub mod host;
pub mod ledger_lines;
pub mod resources;
