// SPDX-License-Identifier: Apache-2.0
//! The wakewalk command: arguments, signals, exit codes. Nothing is decided here.

mod args;
mod commands;
mod plan;
mod progress;
mod say;
mod scratch;
mod stop;

use std::io;
use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};

/// Could not do what was asked; the sentence on standard error says why and what to do.
const FAILED: u8 = 2;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let done = match &cli.command {
        None => commands::host::run(&cli.host),
        Some(Command::Diagnose(args)) => commands::diagnose::run(args),
        Some(Command::Diff(args)) => commands::diff::run(args),
        Some(Command::Doctor(args)) => commands::doctor::run(args),
        Some(Command::Explain(args)) => commands::explain::run(args),
        Some(Command::Await(args)) => commands::wait_and_become::run(args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // A reader such as `head` that has seen enough is no failure.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            say::sentence("wakewalk", &format!("{error:#}"));
            ExitCode::from(FAILED)
        }
    }
}

/// Whether the argument that an error is about says what to watch.
fn names_a_target(error: &clap::Error) -> bool {
    const TARGETS: [&str; 6] = ["--pid", "--port", "--unit", "--cgroup", "--comm", "COMMAND"];
    let argument = error.get(clap::error::ContextKind::InvalidArg).map(ToString::to_string).unwrap_or_default();
    TARGETS.iter().any(|target| argument.contains(target))
}

/// What was typed cannot be understood, or help was asked for.
fn usage(error: &clap::Error) -> ExitCode {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let why = std::error::Error::source(error);
    match (error.kind(), context(ContextKind::InvalidArg), context(ContextKind::InvalidValue), why) {
        // Our own words say what is expected; the parser would wrap them into three paragraphs.
        (ErrorKind::ValueValidation, Some(argument), Some(value), Some(why)) => {
            say::sentence("wakewalk", &format!("`{value}` is no value for {argument}: {why}"));
            ExitCode::from(FAILED)
        }
        (ErrorKind::ArgumentConflict, ..) if names_a_target(error) => {
            say::sentence("wakewalk", "name one target only: --pid, --port, --unit, --cgroup, --comm or -- COMMAND");
            ExitCode::from(FAILED)
        }
        _ => error.exit(),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().filter_map(|e| e.downcast_ref::<io::Error>()).any(|e| e.kind() == io::ErrorKind::BrokenPipe)
}
