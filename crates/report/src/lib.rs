// SPDX-License-Identifier: Apache-2.0
//! What a person or a program gets to see of a verdict or a comparison: terminal, JSON, HTML.
//!
//! `views` turn a verdict into sections, `compared` a comparison, `load` a load; `formats` draw a head and sections. A format never
//! looks at what they are about, and a view never knows who draws it.

pub mod bisect;
pub mod compared;
pub mod explain;
pub mod flame;
pub mod formats;
pub mod head;
pub mod host;
pub mod load;
pub mod numbers;
pub mod printable;
pub mod section;
pub mod verdict;
pub mod views;
