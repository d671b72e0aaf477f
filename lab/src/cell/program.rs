// SPDX-License-Identifier: Apache-2.0
//! One program on its way into a cell: what to run, where, and with how much CPU.

use std::ffi::OsString;

use anyhow::Result;

use super::Cell;

/// A program with its place in the cell.
#[derive(Clone, Debug)]
pub struct Program {
    pub(super) name: String,
    pub(super) exe: OsString,
    pub(super) args: Vec<OsString>,
    pub(super) cpus: Vec<usize>,
    pub(super) group: String,
    pub(super) quota_percent: Option<u64>,
    pub(super) memory: Option<u64>,
    pub(super) far: bool,
}

impl Program {
    /// One that the lab built: its name in `target/lab/bin`.
    pub fn built(name: &str) -> Self {
        Self::new(name, format!("./{name}").into())
    }

    /// One that is installed on the host.
    pub fn installed(name: &str) -> Self {
        // A path names the program only: its output goes to the cell's logs.
        Self::new(name.rsplit('/').next().unwrap_or(name), name.into())
    }

    /// An nginx of one process, with these lines of its `http` block.
    ///
    /// # Errors
    /// The disk is full.
    pub fn nginx(cell: &Cell, http: &str) -> Result<Self> {
        let config = format!(
            "daemon off; master_process off; pid nginx.pid; error_log stderr crit; events {{ worker_connections 1024; }}
             http {{ access_log off; keepalive_requests 1000000; proxy_temp_path temp; client_body_temp_path body;
             fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi; {http} }}\n"
        );
        let config = cell.write("nginx.conf", &config)?.into_os_string();
        let prefix = cell.dir().to_path_buf().into_os_string();
        Ok(Self::installed("nginx").args(["-p".into(), prefix, "-c".into(), config]))
    }

    fn new(name: &str, exe: OsString) -> Self {
        let (group, name) = ("service".into(), name.into());
        Self { name, exe, args: vec![], cpus: vec![], group, quota_percent: None, memory: None, far: false }
    }

    /// Appends arguments.
    #[must_use]
    pub fn args<S: Into<OsString>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Keeps it on these CPUs; on a host with fewer, on the last one.
    #[must_use]
    pub fn on_cpus(mut self, cpus: &[usize]) -> Self {
        self.cpus = cpus.to_vec();
        self
    }

    /// Puts it into another cgroup of the cell than `service`.
    #[must_use]
    pub fn in_group(mut self, group: &str) -> Self {
        self.group = group.into();
        self
    }

    /// Limits its cgroup to a share of one CPU.
    #[must_use]
    pub fn with_quota(mut self, percent: u64) -> Self {
        self.quota_percent = Some(percent);
        self
    }

    /// Limits the memory of its cgroup, in bytes.
    #[must_use]
    pub fn with_memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Starts it at the far end of the cell's second network, see [`super::FAR`].
    #[must_use]
    pub fn far(mut self) -> Self {
        self.far = true;
        self
    }

    /// Calls its output another name than the program's, where one runs twice.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }
}
