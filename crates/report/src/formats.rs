// SPDX-License-Identifier: Apache-2.0
//! One neutral report, several ways to draw it.

pub mod html;
pub mod json;
pub mod terminal;
