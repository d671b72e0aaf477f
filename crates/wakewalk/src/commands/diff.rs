// SPDX-License-Identifier: Apache-2.0
//! `wakewalk diff`: two recordings, or two parts of one, compared. Needs no privilege.

use anyhow::Result;
use diagnose::Case;
use diagnose::comparison::{self, Named};
use recording::Recording;
use report::compared::{self, Compared};
use report::formats::terminal;

use crate::{args, page, parts, plan, say};

/// Runs the command. Any answer is a success, also that nothing differs.
pub fn run(args: &args::Diff) -> Result<()> {
    if let Some(file) = &args.html {
        plan::check_html(file)?;
    }
    let (before, after) = (&args.before, args.after.as_ref().unwrap_or(&args.before));
    let (a, b) = (parts::open(before, args.a)?, parts::open(after, args.b)?);
    let comparison = comparison::compare(&named(&a), &named(&b), per(args.per))?;
    let cases = [Case::new(&a.0), Case::new(&b.0)];
    let sections = compared::sections(&Compared { comparison: &comparison, cases: [&cases[0], &cases[1]] });
    // That nobody reads on (`| head`) does not cost the page.
    let printed = super::print(args.json, &comparison, |width, mut out| {
        terminal::report(&compared::head(&comparison), &sections, width, &mut out)
    });
    if let Some(file) = &args.html {
        page::write(file, &compared::page(&comparison, &sections)?)?;
        say::sentence("page", &file.display().to_string());
    }
    printed
}

fn named(side: &(Recording, String)) -> Named<'_> {
    Named { recording: &side.0, label: side.1.clone() }
}

fn per(per: args::Per) -> comparison::Per {
    match per {
        args::Per::Auto => comparison::Per::Auto,
        args::Per::Answers => comparison::Per::Answers,
        args::Per::WriteCalls => comparison::Per::WriteCalls,
        args::Per::DataSegments => comparison::Per::DataSegments,
        args::Per::Connections => comparison::Per::Connections,
        args::Per::Datagrams => comparison::Per::Datagrams,
        args::Per::Second => comparison::Per::Second,
    }
}
