// SPDX-License-Identifier: Apache-2.0
//! Connection tracking: entries in use, the most there may be, and what was dropped for want of one, in the target's network
//! namespace.
//!
//! `/proc/sys/net` shows the namespace of whoever opens a file there, so that it is opened from inside.

use std::fs::File;

use recording::counters::{Key, conntrack};

use super::reread::Reread;
use super::{Readings, Sampler, Scope};
use crate::namespace;

/// The files; without them when tracking is not in use.
pub struct Conntrack {
    files: Result<Vec<(Key, Reread)>, String>,
    statistics: Reread,
}

pub fn sampler(scope: &Scope) -> Conntrack {
    Conntrack { files: open(scope), statistics: Reread::new(scope.network_file("stat/nf_conntrack")) }
}

impl Sampler for Conntrack {
    fn name(&self) -> &'static str {
        conntrack::SOURCE
    }

    fn needs(&self) -> &'static str {
        "root, to enter the target's network namespace; without it the use of connection tracking there is unknown"
    }

    fn sample(&mut self, _: &Scope, out: &mut Readings) -> Result<(), String> {
        for (key, file) in self.files.as_mut().map_err(|why| why.clone())? {
            if let Some(value) = file.number() {
                out.put(*key, "", value);
            }
        }
        // Some kernels are built without this file: no gap, no row.
        if let Ok(text) = self.statistics.text() {
            put_statistics(text, out);
        }
        Ok(())
    }
}

/// A line of names, then one a CPU with hexadecimal numbers.
fn put_statistics(text: &str, out: &mut Readings) {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split_whitespace().collect()).collect();
    for key in [conntrack::DROP, conntrack::EARLY_DROP, conntrack::INSERT_FAILED] {
        let Some(at) = names.iter().position(|name| *name == key.name) else { continue };
        let values = rows.iter().filter_map(|row| u32::from_str_radix(row.get(at)?, 16).ok());
        out.put(key, "", values.map(f64::from).sum());
    }
}

/// Opens what is there. A missing file means that the kernel tracks no connections: no gap, no row.
fn open(scope: &Scope) -> Result<Vec<(Key, Reread)>, String> {
    let keys = [conntrack::COUNT, conntrack::MAX];
    let paths = keys.map(|key| scope.proc.path(format!("sys/net/netfilter/nf_conntrack_{}", key.name)));
    let files = if scope.own_network {
        paths.each_ref().map(File::open)
    } else {
        let link = scope.proc.path(format!("{}/ns/net", scope.network()));
        namespace::inside(&link, || Ok(paths.each_ref().map(File::open)))
            .map_err(|error| format!("cannot enter the target's network namespace ({error})"))?
    };
    let opened = keys.into_iter().zip(paths).zip(files);
    Ok(opened.filter_map(|((key, path), file)| Some((key, Reread::opened(path, file.ok()?)))).collect())
}

#[cfg(test)]
mod tests {
    use crate::samplers::tests::rows;

    #[test]
    fn statistics_of_all_cpus() {
        let text =
            "entries  found drop early_drop\n00000010 00000000 0000000a 00000001\n00000010 00000000 00000002 0\n";
        let found = rows(super::put_statistics, text);
        assert_eq!((found[" drop"], found[" early_drop"], found.len()), (12.0, 1.0, 2));
    }
}
