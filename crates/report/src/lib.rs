//! What a person or a program gets to see of a verdict: terminal, JSON, HTML.

pub mod section;
