// SPDX-License-Identifier: Apache-2.0
//! The lab's command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Runs services with a known fault and scores wakewalk's verdicts.
#[derive(Debug, Parser)]
#[command(name = "lab")]
pub struct Args {
    /// The wakewalk binary under test [default: the one beside the lab's own].
    #[arg(long, global = true)]
    pub wakewalk: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub command: Action,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Run scenarios and print the score table.
    Run(RunArgs),
    /// List the scenarios.
    List,
    /// Make golden fixtures of the last runs.
    Fixtures {
        /// Only this scenario.
        scenario: Option<String>,
        /// Keep the recordings, make only their verdicts anew.
        #[arg(long)]
        verdicts: bool,
    },
    /// Diagnose chains of processes with scripted waits, and score how often the root is found.
    Chains {
        /// Chains of each length.
        #[arg(long, default_value_t = 10)]
        each: usize,
        /// Put the score into docs/walk.md.
        #[arg(long)]
        readme: bool,
    },
    /// Diagnose services whose requests follow a drawn script, and score what is said that they waited for.
    Scripted {
        /// So many scripts.
        #[arg(long, default_value_t = 30)]
        count: usize,
        /// Put the score into docs/requests.md.
        #[arg(long)]
        readme: bool,
    },
    /// Say how good stacks are for each language, from the recordings of the last run.
    Languages {
        /// Put the table into docs/walk.md.
        #[arg(long)]
        readme: bool,
    },
    /// Boot the kernels that the package manager offers, and try the binary on each.
    Kernels,
    /// Load services of which the truth is known, and judge what `wakewalk load` says.
    Loads(crate::loads::LoadsArgs),
    /// Retell a story: symptom, verdict, fix, before and after.
    Story {
        /// Number of the story.
        number: String,
        /// Put the output into the story's README.
        #[arg(long)]
        readme: bool,
    },
    /// Diagnose a story's service under load and write the page.
    Demo {
        /// Where the page goes.
        #[arg(long, default_value = "target/demo/report.html")]
        html: PathBuf,
    },
    /// Judge `wakewalk diff` by many recordings of one service: false alarms and power.
    BenchDiff(BenchDiffArgs),
    /// Measure what wakewalk costs, beside other tools.
    Bench {
        /// Only these experiments; --list names them.
        names: Vec<String>,
        /// Pairs of each comparison.
        #[arg(long, default_value_t = crate::bench::PAIRS, value_parser = pairs)]
        pairs: usize,
        /// Without the other tools.
        #[arg(long)]
        skip_peers: bool,
        /// Another version's wakewalk, for the experiment `versions`.
        #[arg(long, value_name = "WAKEWALK")]
        against: Option<PathBuf>,
        /// Put the table into docs/bench.md.
        #[arg(long)]
        readme: bool,
        /// Name the experiments.
        #[arg(long)]
        list: bool,
    },
    /// Observe a busy service for long, and see that wakewalk's memory does not grow.
    Soak(crate::bench::soak::SoakArgs),
    /// Diagnose healthy real servers, idle and busy; nobody may be accused.
    Zoo(crate::zoo::ZooArgs),
    /// The open-loop client of the benchmark and the zoo, inside a cell.
    #[command(hide = true)]
    Ask(crate::bench::client::Ask),
    /// Step of a program on its way into a cell.
    #[command(hide = true)]
    Enter {
        /// Cgroup to join; one of each hierarchy may be given.
        #[arg(long = "group")]
        groups: Vec<PathBuf>,
        /// CPU to stay on; may be given several times.
        #[arg(long = "cpu")]
        cpus: Vec<usize>,
        /// The program.
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
    /// Clean a cell up once the runner is gone.
    #[command(hide = true)]
    Keep {
        /// The cell's folder.
        dir: PathBuf,
        /// The cell's cgroups.
        groups: Vec<PathBuf>,
    },
}

/// A number of pairs: one at least; above a thousand somebody mistyped.
fn pairs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(pairs @ 1..=1000) => Ok(pairs),
        _ => Err("name a number from 1 to 1000".into()),
    }
}

/// Arguments of `lab run`.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// Only this scenario.
    pub scenario: Option<String>,
    /// Those that the last commit touched, and two whose turn it is.
    #[arg(long, conflicts_with = "scenario")]
    pub changed: bool,
    /// So many whose turn it is.
    #[arg(long, conflicts_with_all = ["scenario", "changed"])]
    pub rotating: Option<usize>,
    /// Run each so often.
    #[arg(long, default_value_t = 1)]
    pub times: usize,
    /// Run so many variants of each instead: parameters drawn within the ranges in which the truth holds.
    #[arg(long, default_value_t = 0)]
    pub variants: u64,
    /// Seed of the first variant; the next has the next number [default: another each time].
    #[arg(long, requires = "variants")]
    pub seed: Option<u64>,
    /// Observe each side for this many seconds.
    #[arg(long = "for", default_value_t = 6)]
    pub seconds: u64,
    /// Attempts for a run that is right or in which the host was not disturbed.
    #[arg(long, default_value_t = crate::runner::MAX_ATTEMPTS)]
    pub attempts: u32,
}

/// Arguments of `lab bench-diff`.
#[derive(Debug, clap::Args)]
pub struct BenchDiffArgs {
    /// The service.
    #[arg(long, value_enum, default_value = "go")]
    pub service: crate::diff_bench::Service,
    /// Recordings of each side.
    #[arg(long, default_value_t = 10)]
    pub runs: usize,
    /// Length of each recording, seconds.
    #[arg(long = "for", default_value_t = 20)]
    pub seconds: u64,
    /// Record only the service as it is: how much do two runs of one thing differ?
    #[arg(long)]
    pub same_only: bool,
    /// Judge the recordings of the last run anew.
    #[arg(long)]
    pub judge_only: bool,
}
