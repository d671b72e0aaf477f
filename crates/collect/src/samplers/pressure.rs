// SPDX-License-Identifier: Apache-2.0
//! `/proc/pressure`: time in which some or all tasks stalled for want of a resource (PSI).

use recording::counters::pressure;

use super::reread::Reread;
use super::{Readings, Sampler, Scope};

/// The three resources.
pub struct Pressure {
    files: Vec<(&'static str, Reread)>,
}

pub fn sampler(scope: &Scope) -> Pressure {
    let file = |resource| (resource, Reread::new(scope.proc.path(format!("pressure/{resource}"))));
    Pressure { files: ["cpu", "memory", "io"].map(file).into() }
}

impl Sampler for Pressure {
    fn name(&self) -> &'static str {
        pressure::SOURCE
    }

    fn needs(&self) -> &'static str {
        "a kernel with CONFIG_PSI that was not started with psi=0 (or that needs psi=1); without it stalls of the whole \
         host for want of CPU, memory or disk are unknown"
    }

    fn sample(&mut self, _: &Scope, out: &mut Readings) -> Result<(), String> {
        for (resource, file) in &mut self.files {
            parse(resource, file.text()?, out);
        }
        Ok(())
    }
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=12345`, total in us.
fn parse(resource: &str, text: &str, out: &mut Readings) {
    for line in text.lines() {
        let Some((kind, rest)) = line.split_once(' ') else { continue };
        let stood_still = match kind {
            "some" => pressure::SOME_NS,
            "full" => pressure::FULL_NS,
            _ => continue,
        };
        let total = rest.split(' ').find_map(|word| word.strip_prefix("total=")?.parse::<f64>().ok());
        if let Some(total_us) = total {
            out.put(stood_still, resource, total_us * 1e3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samplers::tests::rows;

    #[test]
    fn us_become_ns() {
        let text = "some avg10=0.00 avg60=0.08 avg300=0.51 total=19\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=4\n";
        let found = rows(|text, out| parse("io", text, out), text);
        assert_eq!((found["io some_ns"], found["io full_ns"], found.len()), (19_000.0, 4_000.0, 2));
    }
}
