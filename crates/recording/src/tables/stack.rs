// SPDX-License-Identifier: Apache-2.0
//! Call stacks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A call stack, leaf first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Stack {
    /// Id, from 1.
    pub id: u32,
    /// Ids in table `frame`, leaf first; kernel frames come before user frames.
    pub frames: Vec<u32>,
    /// The unwinder reached the thread's first function (or there is no user part).
    pub complete: bool,
}
