// SPDX-License-Identifier: Apache-2.0
//! A cell: the place where one side of a scenario runs. Own network namespace, own cgroup, own
//! folder; when it is dropped, or the runner dies, nothing of it is left.

mod group;
mod keeper;
mod memory;
mod mounts;
mod net;
mod program;

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

pub use group::Group;
pub use keeper::keep;
pub use net::{FAR, FAR_LINE, NEAR, NEAR_LINE};
pub use program::Program;

use crate::draw::Draw;
use crate::paths::Paths;
use crate::stop::Stop;
use keeper::Keeper;
use memory::Memory;
use net::Net;

/// How long a service may take until it answers.
const READY_LIMIT: Duration = Duration::from_secs(30);

/// The place of one running scenario.
pub struct Cell {
    /// Ends all waiting.
    pub stop: Stop,
    /// Parameters of what runs in it.
    pub draw: Draw,
    bin: PathBuf,
    dir: PathBuf,
    logs: PathBuf,
    net: Net,
    group: Group,
    memory: Memory,
    keeper: Keeper,
    running: Vec<Running>,
}

struct Running {
    name: String,
    child: Child,
}

impl Cell {
    /// Opens an empty cell.
    ///
    /// # Errors
    /// Not root, or the host cannot separate it (the sentence says what is missing).
    pub fn open(name: &str, paths: &Paths, stop: &Stop) -> Result<Self> {
        let unique = format!("wakewalk-lab.{}.{name}", process::id());
        // Not below target/: paths of programs end up in recordings, which are kept.
        let dir = env::temp_dir().join(&unique);
        fs::create_dir_all(&dir).with_context(|| format!("failed to make `{}`", dir.display()))?;
        let logs = paths.logs(name);
        let _ = fs::remove_dir_all(&logs); // those of the run before
        fs::create_dir_all(&logs).with_context(|| format!("failed to make `{}`", logs.display()))?;
        let net = Net::create()?;
        let group = Group::create(&unique, &paths.lab().join("cgroup-cpu"))?;
        let memory = Memory::of(&unique)?;
        let keeper = Keeper::start(&[group.path(), memory.path()], &dir)?;
        group.prefer()?;
        let (stop, bin, draw) = (stop.clone(), paths.bin(), Draw::default());
        Ok(Self { stop, draw, bin, dir, logs, net, group, memory, keeper, running: vec![] })
    }

    /// The cell's own folder, where its programs start.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A cgroup of the cell.
    ///
    /// # Errors
    /// It could not be made.
    pub fn group(&self, name: &str) -> Result<Group> {
        self.group.child(name)
    }

    /// All processes of the cell, with the runner and the keeper: what is not the host's own.
    pub fn own_pids(&self) -> Vec<u32> {
        let mut pids = self.group.pids();
        pids.extend([self.keeper.pid(), process::id()]);
        pids
    }

    /// Writes a file into the cell's folder.
    ///
    /// # Errors
    /// The disk is full.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.dir.join(name);
        fs::write(&path, text).with_context(|| format!("failed to write `{}`", path.display()))?;
        Ok(path)
    }

    /// Sets something of the whole host, by its file, until the cell is closed: whatever happens, the keeper sets it back.
    ///
    /// # Errors
    /// The host does not have it, or it may not be changed.
    pub fn set_host(&self, file: &str, value: &str) -> Result<()> {
        let before = fs::read_to_string(file).with_context(|| format!("failed to read `{file}`"))?;
        keeper::remember(&self.dir, file, before.trim())?;
        fs::write(file, value).with_context(|| format!("failed to write `{file}`"))
    }

    /// What a file says inside the cell's network namespace.
    ///
    /// # Errors
    /// It is not there.
    pub fn read_inside(&self, file: &str) -> Result<String> {
        self.net.inside(|| fs::read_to_string(file).with_context(|| format!("failed to read `{file}`")))
    }

    /// Sets something inside the cell's network namespace, by its file.
    ///
    /// # Errors
    /// It is not there, or may not be changed.
    pub fn write_inside(&self, file: &str, value: &str) -> Result<()> {
        self.net.inside(|| fs::write(file, value).with_context(|| format!("failed to write `{file}`")))
    }

    /// Gives rules to the packet filter of the cell's network namespace.
    ///
    /// # Errors
    /// `nft` is missing (Debian package nftables), or does not like them.
    pub fn filter(&mut self, rules: &str) -> Result<()> {
        self.filter_at(rules, |nft| nft)
    }

    /// The same at the far end of its second network.
    ///
    /// # Errors
    /// As above.
    pub fn filter_far(&mut self, rules: &str) -> Result<()> {
        self.filter_at(rules, Program::far)
    }

    fn filter_at(&mut self, rules: &str, place: fn(Program) -> Program) -> Result<()> {
        let file = self.write("rules.nft", rules)?;
        let nft = self.start(place(Program::installed("nft").args(["-f".into(), file.into_os_string()])))?;
        self.finish(nft, READY_LIMIT).map(drop)
    }

    /// Gives the near end of the line to [`FAR`] a queue, in words of `tc qdisc`.
    ///
    /// # Errors
    /// `tc` is missing (Debian package iproute2), or does not like them.
    pub fn shape(&mut self, queue: &str) -> Result<()> {
        // The line is there from when it is first used.
        self.net.far(|| Ok(()))?;
        let args = ["qdisc", "add", "dev", "near", "root"].into_iter().chain(queue.split(' '));
        let tc = self.start(Program::installed("tc").args(args))?;
        self.finish(tc, READY_LIMIT).map(drop)
    }

    /// Copies something that was built into the cell's folder.
    ///
    /// # Errors
    /// It was not built.
    pub fn bring(&self, name: &str) -> Result<PathBuf> {
        let (from, to) = (self.bin.join(name), self.dir.join(name));
        if !to.exists() {
            fs::copy(&from, &to).with_context(|| format!("failed to copy `{}`", from.display()))?;
        }
        Ok(to)
    }

    /// Starts a program and returns its process id.
    ///
    /// # Errors
    /// It could not be started.
    pub fn start(&mut self, program: Program) -> Result<u32> {
        if program.exe.as_encoded_bytes().starts_with(b"./") {
            self.bring(program.exe.to_string_lossy().trim_start_matches("./"))?;
        }
        let group = self.group.child(&program.group)?;
        if let Some(percent) = program.quota_percent {
            group.set_quota(percent)?;
        }
        let mut command = Command::new(env::current_exe().context("failed to find the lab's own binary")?);
        command.arg("enter").arg("--group").arg(group.path());
        if let Some(bytes) = program.memory {
            command.arg("--group").arg(self.memory.limited(&group, bytes)?);
        }
        let last = thread::available_parallelism().map_or(0, |n| n.get() - 1);
        for &cpu in &program.cpus {
            command.arg("--cpu").arg(cpu.min(last).to_string());
        }
        command.arg("--").arg(absolute(&self.dir, &program.exe)).args(&program.args);
        command.current_dir(&self.dir).stdin(Stdio::null());
        command.stdout(self.log(&program.name, "out")?).stderr(self.log(&program.name, "err")?);
        let spawn = || Ok(command.spawn()?);
        let child = if program.far { self.net.far(spawn) } else { self.net.inside(spawn) };
        let child = child.with_context(|| format!("failed to start {}", program.name))?;
        let pid = child.id();
        self.running.push(Running { name: program.name, child });
        Ok(pid)
    }

    /// Waits until something accepts on a loopback port of the cell.
    ///
    /// # Errors
    /// Nothing does within 30 s, or a program of the cell ended.
    pub fn wait_for_port(&mut self, port: u16) -> Result<()> {
        self.wait_for(Ipv4Addr::LOCALHOST, port)
    }

    /// The same for another address.
    ///
    /// # Errors
    /// As above.
    pub fn wait_for(&mut self, address: Ipv4Addr, port: u16) -> Result<()> {
        let stop = self.stop.clone();
        let ready = stop.poll(READY_LIMIT, || {
            self.check_running()?;
            self.net.inside(|| Ok(TcpStream::connect((address, port)).is_ok()))
        })?;
        if !ready {
            bail!("nothing accepts on port {port} after {} s; see `{}`", READY_LIMIT.as_secs(), self.logs.display());
        }
        Ok(())
    }

    /// Opens a connection to a loopback port of the cell.
    ///
    /// # Errors
    /// Nothing accepts there.
    pub fn connect(&self, port: u16) -> Result<TcpStream> {
        let connect = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).context("failed to connect into the cell");
        self.net.inside(connect)
    }

    /// # Errors
    /// A program of the cell has ended although all of them have to run until they are stopped.
    pub fn check_running(&mut self) -> Result<()> {
        for running in &mut self.running {
            if let Some(status) = running.child.try_wait()? {
                bail!("{} ended ({status}); see `{}`", running.name, self.logs.display());
            }
        }
        Ok(())
    }

    /// Waits for the end of the program with this process id and returns what it printed.
    ///
    /// # Errors
    /// It failed or did not end within `limit`.
    pub fn finish(&mut self, pid: u32, limit: Duration) -> Result<String> {
        let stop = self.stop.clone();
        let at = self.running.iter().position(|r| r.child.id() == pid).context("no such program in the cell")?;
        let mut status = None;
        stop.poll(limit, || {
            status = self.running[at].child.try_wait()?;
            Ok(status.is_some())
        })?;
        let running = self.running.remove(at);
        match status {
            Some(status) if status.success() => {
                fs::read_to_string(self.logs.join(format!("{}.out", running.name))).context("failed to read its output")
            }
            Some(status) => bail!("{} failed ({status}); see `{}`", running.name, self.logs.display()),
            None => bail!("{} did not end within {} s", running.name, limit.as_secs()),
        }
    }

    /// What a program has printed so far.
    pub fn printed(&self, name: &str) -> String {
        fs::read_to_string(self.logs.join(format!("{name}.out"))).unwrap_or_default()
    }

    fn log(&self, name: &str, ending: &str) -> Result<File> {
        let path = self.logs.join(format!("{name}.{ending}"));
        File::create(&path).with_context(|| format!("failed to create `{}`", path.display()))
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        if let Err(error) = self.keeper.release() {
            eprintln!("lab: {error:#}");
        }
        for running in &mut self.running {
            let _ = running.child.wait(); // the keeper killed it; this takes it off the process table
        }
    }
}

fn absolute(dir: &Path, exe: &OsStr) -> PathBuf {
    match Path::new(exe).strip_prefix(".") {
        Ok(name) => dir.join(name),
        Err(_) => PathBuf::from(exe),
    }
}
