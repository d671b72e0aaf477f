// SPDX-License-Identifier: Apache-2.0
//! `wakewalk diff`: two recordings, or two parts of one, compared. Needs no privilege.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use diagnose::Case;
use diagnose::comparison::{self, Named, Window};
use recording::Recording;
use report::compared::{self, Compared};
use report::formats;

use crate::args::{self, Part};
use crate::{plan, say};

/// Runs the command. Any answer is a success, also that nothing differs.
pub fn run(args: &args::Diff) -> Result<()> {
    if let Some(file) = &args.html {
        plan::check_html(file)?;
    }
    let (before, after) = (&args.before, args.after.as_ref().unwrap_or(&args.before));
    let (a, b) = (side(before, args.a)?, side(after, args.b)?);
    let comparison = comparison::compare(&named(&a), &named(&b), per(args.per))?;
    let cases = [Case::new(&a.0), Case::new(&b.0)];
    let sections = compared::sections(&Compared { comparison: &comparison, cases: [&cases[0], &cases[1]] });
    let mut out = anstream::stdout().lock();
    if args.json {
        write!(out, "{}", formats::json::text(&comparison)?)?;
    } else {
        formats::terminal::report(&compared::head(&comparison), &sections, super::diagnose::width(), &mut out)?;
    }
    if let Some(file) = &args.html {
        let page = formats::html::comparison_page(&comparison, &sections)?;
        fs::write(file, page).with_context(|| format!("failed to write the page `{}`", file.display()))?;
        say::sentence("page", &file.display().to_string());
    }
    Ok(())
}

/// A recording, or the part of it, and what it is called.
fn side(dir: &Path, part: Option<Part>) -> Result<(Recording, String)> {
    let whole = recording::open(dir)?;
    let name = dir.display().to_string();
    let Some(part) = part else { return Ok((whole, name)) };
    let to_ns = part.to.map_or(u64::MAX, |to| u64::try_from(to.as_nanos()).unwrap_or(u64::MAX));
    let window = Window { from_ns: u64::try_from(part.from.as_nanos()).unwrap_or(u64::MAX), to_ns };
    let end = part.to.map_or("its end".to_string(), |to| format!("{} s", to.as_secs_f64()));
    let label = format!("{name} from {} s to {end}", part.from.as_secs_f64());
    let cut = comparison::cut(&whole, window).with_context(|| format!("failed to take a part of `{name}`"))?;
    Ok((cut, label))
}

fn named(side: &(Recording, String)) -> Named<'_> {
    Named { recording: &side.0, label: side.1.clone() }
}

fn per(per: args::Per) -> comparison::Per {
    match per {
        args::Per::Auto => comparison::Per::Auto,
        args::Per::WriteCalls => comparison::Per::WriteCalls,
        args::Per::DataSegments => comparison::Per::DataSegments,
        args::Per::Connections => comparison::Per::Connections,
        args::Per::Datagrams => comparison::Per::Datagrams,
        args::Per::Second => comparison::Per::Second,
    }
}
