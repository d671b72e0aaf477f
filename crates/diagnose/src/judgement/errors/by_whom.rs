// SPDX-License-Identifier: Apache-2.0
//! Errors of which it is known who makes them.

use std::net::SocketAddr;

use super::{Above, MIN_COUNT, OF_ALL, away, find_out, words};
use crate::case::Case;
use crate::facts::broken_off::BrokenOff;
use crate::facts::errors::{Error, Kind};
use crate::facts::refused::Refused;
use crate::judgement::dropped_here;
use crate::wording::{count, percent};

/// What is said of one, with his name.
pub(super) fn told(case: &Case, error: &Error) -> Option<Above> {
    [refused, broken_off, filtered, away::told].into_iter().find_map(|told| told(case, error))
}

/// Of the connections that could not be made, refused by one peer: then it is the one to name.
const MOSTLY: f64 = 0.8;

/// Who refused connections, where it was one peer.
fn refused(case: &Case, error: &Error) -> Option<Above> {
    let refused = case.fact::<Refused>().ok()?;
    let (peer, number) = &refused.most;
    let is_it = error.kind == Kind::NotMade && *number >= (error.at_most() * MOSTLY).max(MIN_COUNT);
    let see = match peer.parse::<SocketAddr>() {
        Ok(address) => format!("nc -vz {} {}", address.ip(), address.port()),
        Err(_) => words(error.kind).1.to_string(),
    };
    let nobody = if refused.nobody_listens { ", where nobody listens" } else { "" };
    is_it.then(|| Above {
        what: format!("{} of {} connections were refused by {peer}{nobody}", count(*number), count(error.of)),
        share: error.share(),
        advice: find_out(&see),
        about: OF_ALL,
    })
}

/// By whom SYNs of clients were dropped, and how to look at that.
fn filtered(case: &Case, error: &Error) -> Option<Above> {
    let (by, see) = dropped_here::before_the_listener(case).filter(|_| error.kind == Kind::Filtered)?;
    Some(Above {
        what: format!(
            "{} of {} SYNs of clients for its ports ({}) were dropped on this host before they came to it, by {by}",
            count(error.at_most()),
            count(error.of),
            percent(error.share())
        ),
        share: error.share(),
        advice: format!("find the rule (`{see}`), and whether it is meant for these clients"),
        about: "A client whose SYN is dropped tries again after 1 s, 3 s and so on: a limit of new connections a second makes it wait, a list \
                of banned addresses keeps it out.",
    })
}

/// Who breaks the target's questions off.
fn broken_off(case: &Case, error: &Error) -> Option<Above> {
    let broken = case.fact::<BrokenOff>().ok().filter(|_| error.kind == Kind::BrokenOff)?;
    let (broken, peer) = (&broken.by_peer, &broken.by_peer.name);
    let (to, most) = match broken.of_several {
        true => (String::new(), format!(", most by {peer}")),
        false => (format!(" to {peer}"), String::new()),
    };
    let how = if 2.0 * broken.by_closing > broken.count { "by closing" } else { "by a reset" };
    Some(Above {
        what: format!(
            "{} of its {} questions{to} ({}) were broken off {how}{most}",
            count(error.count),
            count(error.of),
            percent(error.share())
        ),
        share: error.share(),
        advice: format!("look in the log of {peer}: it resets or closes connections in which it owes an answer"),
        about: "Whoever is asked crashes, is restarted, or closes what it takes for idle; a request that is tried again hides it.",
    })
}
