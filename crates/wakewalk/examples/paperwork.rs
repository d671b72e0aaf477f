// SPDX-License-Identifier: Apache-2.0
//! Writes the man pages and the shell completions of the package into a folder, from the same declaration that
//! `--help` shows. An example and not a command, so that the released binary does not carry the generators.

// What the binary does with its arguments is of no interest here.
#![allow(dead_code, clippy::unwrap_used)]

#[path = "../src/args.rs"]
mod args;

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

fn main() -> io::Result<()> {
    let folder = env::args_os().nth(1).map(PathBuf::from);
    let Some(folder) = folder else {
        return Err(io::Error::other("usage: paperwork FOLDER"));
    };
    fs::create_dir_all(&folder)?;
    let mut command = shown(&args::Cli::command());
    for (shell, name) in [(Shell::Bash, "wakewalk.bash"), (Shell::Zsh, "_wakewalk"), (Shell::Fish, "wakewalk.fish")] {
        let mut file = fs::File::create(folder.join(name))?;
        clap_complete::generate(shell, &mut command.clone(), "wakewalk", &mut file);
    }
    command = command.disable_help_subcommand(true);
    command.build();
    for sub in command.get_subcommands() {
        // Lives as long as this short program; clap wants names that outlive it.
        let name: &'static str = format!("wakewalk-{}", sub.get_name()).leak();
        page(sub.clone().name(name), &folder)?;
    }
    page(command, &folder)
}

/// The declaration without what is hidden from `--help`.
fn shown(all: &Command) -> Command {
    let mut command = Command::new("wakewalk").version(env!("CARGO_PKG_VERSION")).args(all.get_arguments().cloned());
    command = command.subcommands(all.get_subcommands().filter(|sub| !sub.is_hide_set()).cloned());
    if let (Some(about), Some(long)) = (all.get_about(), all.get_long_about()) {
        command = command.about(about.clone()).long_about(long.clone());
    }
    command
}

fn page(command: Command, folder: &Path) -> io::Result<()> {
    let name = format!("{}.1", command.get_name());
    Man::new(command).manual("Wakewalk manual").render(&mut fs::File::create(folder.join(name))?)
}
