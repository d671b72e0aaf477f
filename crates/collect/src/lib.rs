//! Probes and samplers: what the kernel says about a target, put into tables.

pub mod probes;
