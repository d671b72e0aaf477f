// SPDX-License-Identifier: Apache-2.0
//! How much of the CPU time is in code without names: what is said about functions knows that much less.

use super::Remark;
use crate::answer::{Gap, Unseen};
use crate::case::Case;
use crate::facts::profile::Profile;
use crate::facts::stacks::Stacks;
use crate::runtimes::jit;
use crate::statistics::share;
use crate::wording::percent;

/// From a quarter on, a list of the largest functions misses too much to be one.
const MUCH: f64 = 0.25;

/// Samples: fewer do not make a share.
const MIN_SAMPLES: u64 = 50;

/// Code without names.
struct Unnamed {
    /// Its share of the CPU time.
    share: f64,
    /// What it is, `JIT-compiled code without names`.
    what: &'static str,
    /// How to get the names, a sentence without its full stop.
    remedy: String,
}

/// The target's first process.
fn pid(case: &Case) -> String {
    case.recording.meta.target.pids.first().map_or("PID".to_string(), u32::to_string)
}

/// What has no names, if it is much.
fn much(case: &Case) -> Option<Unnamed> {
    let (profile, stacks) = (case.fact::<Profile>().ok()?, case.fact::<Stacks>().ok()?);
    let part = share(profile.unnamed_own as f64, profile.total.samples as f64);
    if part < MUCH || profile.total.samples < MIN_SAMPLES {
        return None;
    }
    let is_jit = profile.unnamed_jit * 2 >= profile.unnamed_own;
    let (what, remedy) = match is_jit {
        true => (
            "JIT-compiled code without names",
            jit::names(stacks.beside_jit()).fully.replace("jcmd PID", &format!("jcmd {}", pid(case))),
        ),
        false => {
            ("code without symbols", "install the debug symbols of its binaries, or do not strip them".to_string())
        }
    };
    Some(Unnamed { share: part, what, remedy })
}

/// Why that no function stands out is less certain.
pub(crate) fn remark(case: &Case) -> Option<Remark> {
    let Unnamed { share, what, remedy } = much(case)?;
    let share = percent(share);
    Some(Remark {
        headline: format!("{share} of it in {what}"),
        advice: None,
        detail: format!(
            "That no function stands out is less certain than usual: {share} of the CPU time is in {what}. To see it by \
             name, {remedy}."
        ),
    })
}

/// The same as a gap of the verdict.
pub(crate) fn function_names(case: &Case) -> Option<Gap> {
    let unnamed = much(case)?;
    let why = format!(
        "{} of the CPU time is in {}: functions there are told apart by address only. To see them by name, {}, and \
         diagnose again",
        percent(unnamed.share),
        unnamed.what,
        unnamed.remedy
    );
    Some(Gap::new("function names", Unseen::Partial, why).of_share(unnamed.share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    fn gap_of(text: &str) -> Option<Gap> {
        function_names(&Case::new(&parse(text).unwrap()))
    }

    const NODE: &str = "frame id=1 module=\"[jit]\" kind=jit offset=4096\nframe id=2 symbol=Builtins_X module=node
        frame id=3 module=nginx kind=native offset=64\nframe id=4 symbol=parse module=svc kind=native
        stack id=1 frames=[1]\nstack id=2 frames=[2,1]\nstack id=3 frames=[3]\nstack id=4 frames=[4]\n";

    #[test]
    fn much_unnamed_code_is_a_gap_with_its_remedy() {
        let jit =
            gap_of(&format!("{NODE}sample stack=1 weight=40\nsample stack=2 weight=20\nsample stack=4 weight=40"));
        let why = jit.unwrap().why;
        assert!(why.starts_with("60 % of the CPU time is in JIT-compiled code without names"), "{why}");
        assert!(why.contains("node --perf-basic-prof"), "{why}");
        let stripped = gap_of(&format!("{NODE}sample stack=3 weight=100")).unwrap().why;
        assert!(stripped.contains("100 % of the CPU time is in code without symbols"), "{stripped}");
    }

    #[test]
    fn little_or_named_is_none() {
        assert_eq!(gap_of(&format!("{NODE}sample stack=1 weight=20\nsample stack=4 weight=80")), None);
        assert_eq!(gap_of(&format!("{NODE}sample stack=1 weight=20")), None, "too few samples");
        assert_eq!(gap_of(&format!("{NODE}sample stack=1 kernel=true weight=100")), None, "the kernel's time");
        assert_eq!(gap_of(""), None);
    }
}
