//! `/sys/class/net/*/speed`: what a network interface can carry, where the driver knows.

use std::fs;

use super::{Readings, Sampler, Scope};
use crate::proc::text;

const NAME: &str = "sys/class/net";

/// Interfaces of our own network namespace; sysfs shows no other.
pub struct Link;

impl Sampler for Link {
    fn name(&self) -> &'static str {
        NAME
    }

    fn needs(&self) -> &'static str {
        "sysfs, and a target in our own network namespace; without it the share of a link's speed is unknown"
    }

    fn sample(&mut self, scope: &Scope, out: &mut Readings) -> Result<(), String> {
        if !scope.own_network {
            return Err("the target has a network namespace of its own".to_string());
        }
        let dir = scope.proc.root().join(NAME);
        let entries = fs::read_dir(&dir).map_err(|error| format!("cannot read {} ({error})", dir.display()))?;
        for entry in entries.flatten() {
            // Reading fails, or gives -1, where there is no link or no notion of speed.
            let speed = text(&entry.path().join("speed")).and_then(|mbit| mbit.trim().parse::<f64>().ok());
            if let Some(mbit) = speed.filter(|mbit| *mbit > 0.0) {
                out.put(NAME, &entry.file_name().to_string_lossy(), "speed_bits_per_s", mbit * 1e6);
            }
        }
        Ok(())
    }
}
