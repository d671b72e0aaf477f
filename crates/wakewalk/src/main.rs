// SPDX-License-Identifier: Apache-2.0
//! The wakewalk command: arguments, signals, exit codes. Nothing is decided here.

mod args;
mod cleanup;
mod commands;
mod left;
mod message;
mod page;
mod parts;
mod plan;
mod progress;
mod say;
mod scratch;
mod stop;
mod watchdog;

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
        Some(Command::Load(args)) => commands::load::run(args),
        Some(Command::Bisect(args)) => commands::bisect::run(args),
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

/// What to do about two arguments that exclude each other, where the parser's own words do not say it.
fn conflict(error: &clap::Error) -> Option<&'static str> {
    use clap::error::ContextKind::{InvalidArg, PriorArg};
    const TARGETS: [&str; 6] = ["--pid", "--port", "--unit", "--cgroup", "--comm", "COMMAND"];
    let argument = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let is_about = |name: &str| argument(InvalidArg).contains(name) || argument(PriorArg).contains(name);
    if is_about("--at") {
        return Some("--at takes a part of a recording: name one with --from DIR");
    }
    let is_target = |kind| TARGETS.iter().any(|target| argument(kind).contains(target));
    (is_target(InvalidArg) && is_target(PriorArg))
        .then_some("name one target only: --pid, --port, --unit, --cgroup, --comm or -- COMMAND")
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
        (ErrorKind::InvalidValue, Some(argument), Some(value), _) => {
            let nearest = context(ContextKind::SuggestedValue).map(|near| format!("did you mean `{near}`? "));
            let (nearest, known) = (nearest.unwrap_or_default(), list(error.get(ContextKind::ValidValue)));
            say::sentence("wakewalk", &format!("`{value}` is no value for {argument}: {nearest}known are {known}"));
            ExitCode::from(FAILED)
        }
        (ErrorKind::ArgumentConflict, ..) if conflict(error).is_some() => {
            say::sentence("wakewalk", conflict(error).unwrap_or_default());
            ExitCode::from(FAILED)
        }
        _ => error.exit(),
    }
}

fn list(values: Option<&clap::error::ContextValue>) -> String {
    match values {
        Some(clap::error::ContextValue::Strings(values)) => values.join(", "),
        _ => "others".into(),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().filter_map(|e| e.downcast_ref::<io::Error>()).any(|e| e.kind() == io::ErrorKind::BrokenPipe)
}
