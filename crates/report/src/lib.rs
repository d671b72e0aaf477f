// SPDX-License-Identifier: Apache-2.0
//! What a person or a program gets to see of a verdict or a comparison: terminal, JSON, HTML.
//!
//! `views` turn a verdict into sections, `compared` a comparison, `formats` draw sections. A format never looks at what a
//! section is about, and a view never knows who draws it.

pub mod compared;
pub mod flame;
pub mod formats;
pub mod host;
pub mod numbers;
pub mod printable;
pub mod section;
pub mod views;
