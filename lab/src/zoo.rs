// SPDX-License-Identifier: Apache-2.0
//! `lab zoo`: healthy real servers, each at idle and at shares of its limit, diagnosed; nobody may be accused.
//!
//! A server is a file of `zoo/animals` and a line in `animals.rs`. It lives in a cell; its visitors come by an open-loop
//! plan, at a share of the rate that a closed loop reached just before, on the same CPUs: as where service and
//! neighbours share a machine. Recordings of accusations are kept, to be replayed once a rule has changed.

pub mod animal;
mod animals;
mod keeping;
mod visit;
mod visitors;

use std::fs;
use std::str::FromStr;

use anyhow::{Context, Result};

use crate::documents;
use crate::paths::Paths;
use crate::pick;
use crate::stop::Stop;
use animal::Animal;
use animals::ALL;
use keeping::{Book, Entry};
use visit::Visit;

const MARK: &str = "<!-- output of `make zoo`: begin -->";

/// How much is going on at a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Clients are connected and ask for next to nothing.
    Idle,
    /// Percent of the server's limit.
    Percent(u32),
}

impl FromStr for Load {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text.parse() {
            Ok(percent @ 1..=95) => Ok(Self::Percent(percent)),
            _ if text == "idle" => Ok(Self::Idle),
            _ => Err("name `idle`, or percent of the limit from 1 to 95".into()),
        }
    }
}

impl std::fmt::Display for Load {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Idle => f.write_str("idle"),
            Self::Percent(percent) => write!(f, "{percent} %"),
        }
    }
}

/// Arguments of `lab zoo`.
#[derive(Debug, clap::Args)]
pub struct ZooArgs {
    /// Only these servers; --list names them.
    pub servers: Vec<String>,
    /// At which loads: `idle`, or percent of the limit.
    #[arg(long, value_delimiter = ',', default_value = "idle,30,80")]
    pub loads: Vec<Load>,
    /// How often.
    #[arg(long, default_value_t = 1)]
    pub rounds: usize,
    /// Observe each for this many seconds.
    #[arg(long = "for", default_value_t = 6)]
    pub seconds: u64,
    /// Attempts at each load, for one in which the host was not disturbed.
    #[arg(long, default_value_t = 3)]
    pub attempts: u32,
    /// Two servers that need nothing more than the lab does, at one load: those whose turn it is.
    #[arg(long, conflicts_with = "servers")]
    pub rotating: bool,
    /// Put the table into docs/zoo.md.
    #[arg(long)]
    pub readme: bool,
    /// Name the servers.
    #[arg(long)]
    pub list: bool,
}

/// All servers, for `lab zoo --list`.
pub fn list() -> impl Iterator<Item = (&'static str, &'static str)> {
    ALL.iter().map(|animal| (animal.name, animal.about))
}

/// Visits the servers and prints the table; false = somebody was accused, or a visit failed.
///
/// # Errors
/// A name that there is not, or the runner was asked to end.
pub fn run(args: &ZooArgs, paths: &Paths, stop: &Stop) -> Result<bool> {
    let (picked, loads) = choose(args, paths)?;
    fs::create_dir_all(paths.lab()).context("failed to make the lab's folder")?;
    let mut book = Book::open(paths)?;
    if crate::probe::bpf_refused(paths) {
        println!("SKIPPED: this kernel refuses BPF altogether (wakewalk doctor says why); {} servers", picked.len());
        picked.iter().try_for_each(|animal| book.add(Entry::skipped(animal, "this kernel refuses BPF")))?;
    } else {
        for round in 1..=args.rounds {
            for animal in &picked {
                eprintln!("{}: {}", animal.name, animal.about);
                let (seconds, attempts) = (args.seconds, args.attempts);
                let visit = Visit { paths, stop, animal, round, seconds, attempts };
                visit.all(&loads, &mut book)?;
                stop.check()?;
            }
        }
    }
    print!("{}", book.lines());
    if args.readme {
        documents::put(&paths.repository.join("docs/zoo.md"), MARK, &book.table())?;
    }
    Ok(book.is_clean())
}

fn choose(args: &ZooArgs, paths: &Paths) -> Result<(Vec<&'static Animal>, Vec<Load>)> {
    if !args.rotating {
        return Ok((named(&args.servers)?, args.loads.clone()));
    }
    let turn = pick::commits(&paths.repository)?;
    let (picked, load) = rotate(turn, &args.loads)?;
    let names: Vec<&str> = picked.iter().map(|animal| animal.name).collect();
    println!("the zoo's turn {turn} (commits): {} at {load}", names.join(" and "));
    Ok((picked, vec![load]))
}

/// Two servers that need nothing beyond what the lab does, and a load; all have their turn.
fn rotate(turn: usize, loads: &[Load]) -> Result<(Vec<&'static Animal>, Load)> {
    let base: Vec<&Animal> = ALL.iter().copied().filter(|animal| animal.needs.is_empty()).collect();
    let picked = base.iter().cycle().skip(turn * 2 % base.len()).take(2).copied().collect();
    // After each pass over the servers the loads have moved on by one.
    let load = loads.get((turn + turn * 2 / base.len()) % loads.len().max(1)).context("no load was named")?;
    Ok((picked, *load))
}

fn named(names: &[String]) -> Result<Vec<&'static Animal>> {
    if names.is_empty() {
        return Ok(ALL.to_vec());
    }
    let find = |name: &String| ALL.iter().copied().find(|animal| animal.name == name);
    let found = names.iter().map(|name| {
        find(name).with_context(|| {
            let all: Vec<&str> = list().map(|(name, _)| name).collect();
            format!("the zoo has no `{name}`; there are {}", all.join(", "))
        })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn loads_by_name() {
        let loads: Vec<_> = ["idle", "30", "80"].into_iter().map(|text| text.parse::<Load>().unwrap()).collect();
        assert_eq!(loads, [Load::Idle, Load::Percent(30), Load::Percent(80)]);
        assert!("100".parse::<Load>().is_err() && "busy".parse::<Load>().is_err());
    }

    #[test]
    fn servers_by_name() {
        assert_eq!(named(&["nginx".into()]).unwrap().len(), 1);
        assert_eq!(named(&[]).unwrap().len(), ALL.len());
        let error = named(&["ngnix".into()]).err().unwrap().to_string();
        assert!(error.contains("`ngnix`") && error.contains("nginx,"), "{error}");
    }

    #[test]
    fn every_server_of_the_base_has_its_turn_at_every_load() {
        let loads = [Load::Idle, Load::Percent(30), Load::Percent(80)];
        let mut seen = BTreeSet::new();
        for turn in 0..300 {
            let (picked, load) = rotate(turn, &loads).unwrap();
            seen.extend(picked.iter().map(|animal| (animal.name, load.to_string())));
        }
        let base = ALL.iter().filter(|animal| animal.needs.is_empty()).count();
        assert_eq!(seen.len(), base * loads.len());
    }

    #[test]
    fn names_are_unique_and_sources_are_there() {
        let names: BTreeSet<_> = list().map(|(name, _)| name).collect();
        assert_eq!(names.len(), ALL.len());
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for build in ALL.iter().flat_map(|animal| animal.builds) {
            let source = build.source();
            assert!(repository.join(&source).exists(), "{}", source.display());
        }
    }

    #[test]
    fn the_document_has_a_place_for_the_table() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/zoo.md");
        assert!(documents::fill(&fs::read_to_string(file).unwrap(), MARK, "x").is_ok());
    }
}
