// SPDX-License-Identifier: Apache-2.0
//! Connection tracking: entries in use and the most there may be, in the target's network namespace.
//!
//! `/proc/sys/net` shows the namespace of whoever opens a file there, so that it is opened from inside.

use std::fs::File;

use recording::counters::{Key, conntrack};

use super::reread::Reread;
use super::{Readings, Sampler, Scope};
use crate::namespace;

/// The two files; without them when tracking is not in use.
pub struct Conntrack {
    files: Result<Vec<(Key, Reread)>, String>,
}

pub fn sampler(scope: &Scope) -> Conntrack {
    Conntrack { files: open(scope) }
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
        Ok(())
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
