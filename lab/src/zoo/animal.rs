// SPDX-License-Identifier: Apache-2.0
//! What a server of the zoo is: how it is started, who visits it, and what has to be there for it.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::bench::client::Address;
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::paths::Paths;
use crate::scenario::Aim;

/// The port of every server; each has a network of its own.
pub const PORT: u16 = 8080;
/// The port of what is behind it, where something is.
pub const BACK: u16 = 8081;

/// How many connections visitors have, unless told otherwise.
pub const CONNECTIONS: usize = 32;
/// How long a step of preparation may take.
const LIMIT: Duration = Duration::from_secs(60);

/// One healthy server.
pub struct Animal {
    /// Its name.
    pub name: &'static str,
    /// One sentence: what it is, and what its visitors ask.
    pub about: &'static str,
    /// What `scripts/install-deps.sh zoo` installs for it: commands, paths, or what it puts below cargo's target folder
    /// (`target:PATH`). Empty = the lab needs no more for it than for anything else, and `make test` may visit it.
    pub needs: &'static [&'static str],
    /// What has to be built first.
    pub builds: &'static [Build],
    /// Starts it, waits until it answers, and says what to diagnose and who visits it.
    pub stage: fn(&mut Cell, &Paths) -> Result<Staged>,
}

/// A running server.
pub struct Staged {
    /// What wakewalk is told to diagnose; asked once the visitors are there.
    pub aim: Box<dyn Fn() -> Result<Aim>>,
    /// Who visits.
    pub visitors: Visitors,
}

/// What visitors ask, and how often.
#[derive(Clone, Debug)]
pub struct Visitors {
    /// Where.
    pub to: Address,
    /// What a new connection says first.
    pub hello: Vec<Vec<u8>>,
    /// What is asked again and again.
    pub request: Vec<u8>,
    /// Replies are HTTP; else they are of constant length.
    pub http: bool,
    /// How many connections.
    pub connections: usize,
    /// Requests a second that stand for the limit, where a small absolute rate is the point; the real limit is measured
    /// all the same.
    pub modest: Option<f64>,
}

impl Visitors {
    /// Of a web server: ask for a page.
    pub fn web(path: &str) -> Self {
        let request = format!("GET {path} HTTP/1.1\r\nHost: zoo\r\n\r\n");
        Self { http: true, ..Self::plain(Address::Tcp(PORT), request) }
    }

    /// Of a server whose replies have one length.
    pub fn plain(to: Address, request: impl Into<Vec<u8>>) -> Self {
        let (hello, request) = (Vec::new(), request.into());
        Self { to, hello, request, http: false, connections: CONNECTIONS, modest: None }
    }

    /// With what each connection says first.
    #[must_use]
    pub fn greeting(self, hello: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self { hello: hello.into_iter().collect(), ..self }
    }

    /// Over so many connections.
    #[must_use]
    pub fn over(self, connections: usize) -> Self {
        Self { connections, ..self }
    }

    /// At shares of this rate instead of the limit.
    #[must_use]
    pub fn at_most(self, per_second: f64) -> Self {
        Self { modest: Some(per_second), ..self }
    }
}

/// Diagnosed as `aim` says.
pub fn by(aim: Aim, visitors: Visitors) -> Result<Staged> {
    Ok(Staged { aim: Box::new(move || Ok(aim.clone())), visitors })
}

/// Diagnosed by its port.
pub fn by_port(visitors: Visitors) -> Result<Staged> {
    by(Aim::Port(PORT), visitors)
}

/// Writes a configuration, with the cell's folder in the place of `@DIR@`.
pub fn configure(cell: &Cell, name: &str, text: &str) -> Result<OsString> {
    let text = text.replace("@DIR@", &cell.dir().display().to_string());
    Ok(cell.write(name, &text)?.into_os_string())
}

/// Runs a step of preparation to its end.
pub fn prepare(cell: &mut Cell, program: Program) -> Result<String> {
    let pid = cell.start(program.in_group("load"))?;
    cell.finish(pid, LIMIT)
}

/// A folder of the cell that a server of this user may write to.
pub fn folder(cell: &mut Cell, name: &str, user: Option<&str>) -> Result<String> {
    let dir = cell.dir().join(name);
    fs::create_dir_all(&dir).with_context(|| format!("failed to make `{}`", dir.display()))?;
    if let Some(user) = user {
        // By the program: a static one like ours cannot look users up.
        prepare(cell, Program::installed("chown").args([format!("{user}:")]).args([&dir]))?;
    }
    Ok(dir.display().to_string())
}

/// A program of that user.
pub fn as_user(user: &str, exe: &str) -> Program {
    let args = [format!("--reuid={user}"), format!("--regid={user}"), "--clear-groups".into(), exe.to_string()];
    let name = Path::new(exe).file_name().unwrap_or_default().to_string_lossy().into_owned();
    Program::installed("setpriv").named(&name).args(args)
}

/// The last in order of what matches `DIR/PREFIX*/REST`: programs whose place or name has a version in it.
pub fn versioned(dir: &str, prefix: &str, rest: &str) -> Result<String> {
    let entries = fs::read_dir(dir).with_context(|| format!("failed to read `{dir}`"))?.flatten();
    let mut found: Vec<_> = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| if rest.is_empty() { entry.path() } else { entry.path().join(rest) })
        .filter(|path| path.exists())
        .collect();
    found.sort();
    let last = found.pop().with_context(|| format!("there is no `{dir}/{prefix}*/{rest}`"))?;
    Ok(last.display().to_string())
}

/// What an animal needs and the host does not have.
pub fn missing(animal: &Animal, paths: &Paths) -> Option<&'static str> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has = |what: &str| match what.split_once(':') {
        Some((_, below)) => paths.target.join(below).exists(),
        None if what.starts_with('/') => Path::new(what).exists(),
        None => std::env::split_paths(&path).any(|dir| dir.join(what).exists()),
    };
    animal.needs.iter().copied().find(|what| !has(what))
}
