// SPDX-License-Identifier: Apache-2.0
//! The lab runner's command: arguments in, table out, exit code 1 where a verdict was wrong.

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use lab::args::{Action, Args, BenchDiffArgs, RunArgs};
use lab::bench::Bench;
use lab::fixtures::Source;
use lab::paths::Paths;
use lab::runner::Runner;
use lab::score::Score;
use lab::stop::Stop;
use lab::{
    bench, cell, chains, diff_bench, enter, fixtures, kernels, languages, loads, pick, probe, scenarios, scripted,
    story, zoo,
};

fn main() -> ExitCode {
    match run(Args::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("lab: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(args: Args) -> Result<ExitCode> {
    match args.command {
        Action::Enter { groups, cpus, command } => enter::enter(&groups, &cpus, &command)?,
        Action::Keep { dir, groups } => cell::keep(&dir, &groups)?,
        Action::List => scenarios::ALL.iter().for_each(|s| println!("{:18} {}", s.name, s.about)),
        Action::Bench { list: true, .. } => bench::list().for_each(|(name, about)| println!("{name:18} {about}")),
        Action::Bench { names, pairs, readme, skip_peers, against, .. } => {
            let (paths, stop) = (Paths::find(args.wakewalk)?, Stop::listen()?);
            let bench = Bench { paths: &paths, stop: &stop, pairs, skip_peers, against };
            return bench::run(&bench, &names, readme).map(judged);
        }
        Action::Soak(o) => return bench::soak::run(&o, &Paths::find(args.wakewalk)?, &Stop::listen()?).map(judged),
        Action::Ask(ask) => bench::client::ask(&ask, &Stop::listen()?)?,
        Action::Zoo(options) if options.list => zoo::list().for_each(|(name, about)| println!("{name:18} {about}")),
        Action::Zoo(options) => return zoo::run(&options, &Paths::find(args.wakewalk)?, &Stop::listen()?).map(judged),
        Action::Loads(o) => return loads::run(&o, &Paths::find(args.wakewalk)?, &Stop::listen()?).map(judged),
        Action::Run(options) => return score(&Paths::find(args.wakewalk)?, &options),
        Action::Fixtures { scenario, verdicts } => {
            let source = if verdicts { Source::Kept } else { Source::LastRun };
            let made = fixtures::refresh(&pick::named(scenario.as_deref())?, source, &Paths::find(args.wakewalk)?)?;
            made.iter().for_each(|dir| println!("{}", dir.display()));
        }
        Action::Chains { each, readme } => {
            return chains::run(each, readme, &Paths::find(args.wakewalk)?, &Stop::listen()?).map(judged);
        }
        Action::Scripted { count, readme } => {
            return scripted::run(count, readme, &Paths::find(args.wakewalk)?, &Stop::listen()?).map(judged);
        }
        Action::Languages { readme } => languages::run(readme, &Paths::find(args.wakewalk)?)?,
        Action::Kernels => {
            let tally = kernels::run(&Paths::find(args.wakewalk)?, &Stop::listen()?)?;
            println!("{} passed, {} failed, {} skipped", tally.passed, tally.failed, tally.skipped);
            return Ok(ExitCode::from(u8::from(tally.failed > 0)));
        }
        Action::Story { number, readme } => {
            story::tell(&number, readme, &Paths::find(args.wakewalk)?, &Stop::listen()?)?
        }
        Action::BenchDiff(options) => return bench_diff(&Paths::find(args.wakewalk)?, &options),
        Action::Demo { html } => story::demo(&html, &Paths::find(args.wakewalk)?, &Stop::listen()?)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// 1 where something is not as it should be.
fn judged(well: bool) -> ExitCode {
    ExitCode::from(u8::from(!well))
}

fn bench_diff(paths: &Paths, options: &BenchDiffArgs) -> Result<ExitCode> {
    if !options.judge_only {
        let (service, runs, seconds, same_only) = (options.service, options.runs, options.seconds, options.same_only);
        diff_bench::record(&diff_bench::Plan { service, runs, seconds, same_only }, paths, &Stop::listen()?)?;
    }
    let held = diff_bench::judge(options.service, paths)?;
    Ok(judged(held))
}

/// What parameters are drawn by in each round; none = they are as usual.
fn seeds(options: &RunArgs) -> Vec<Option<u64>> {
    let variants = options.variants * options.times as u64;
    if variants == 0 {
        return vec![None; options.times];
    }
    // Short enough to be typed again.
    let first = options.seed.unwrap_or_else(|| fastrand::u64(..1_000_000));
    println!("variants: seeds {first} to {}; one again: lab run NAME --variants 1 --seed N", first + variants - 1);
    (0..variants).map(|n| Some(first.wrapping_add(n))).collect()
}

fn score(paths: &Paths, options: &RunArgs) -> Result<ExitCode> {
    let picked = match options.changed {
        true => pick::changed_and_rotating(&paths.repository, 2)?,
        false => match options.rotating {
            Some(count) => pick::rotating(&paths.repository, count)?,
            None => pick::named(options.scenario.as_deref())?,
        },
    };
    std::fs::create_dir_all(paths.lab())?;
    let refused = probe::bpf_refused(paths);
    let mut rows = Vec::new();
    if refused {
        println!("SKIPPED: this kernel refuses BPF altogether (wakewalk doctor says why); {} scenarios", picked.len());
        // A run that has to be whole proves nothing without the kernel.
        anyhow::ensure!(!lab::is_ci(), "in CI the lab needs a kernel that takes BPF programs, and root");
    } else {
        let stop = Stop::listen()?;
        let (seconds, attempts) = (options.seconds, options.attempts);
        rows = Runner { paths, stop: &stop, seconds, attempts, seed: None }.run_all(&picked, &seeds(options))?;
    }
    let score = Score::new(rows, if refused { picked.len() } else { 0 });
    let file = paths.lab().join("score.json");
    score.write(&file)?;
    print!("{}", score.table());
    println!("repeated because the host was disturbed: {}; written to {}", score.repeats, file.display());
    println!("{} passed, {} failed, {} skipped", score.passed, score.failed, score.skipped);
    Ok(ExitCode::from(u8::from(score.failed > 0)))
}
