// SPDX-License-Identifier: Apache-2.0
//! Something that could not be looked at.

use recording::tables;
use schemars::JsonSchema;
use serde::de::IntoDeserializer;
use serde::de::value::Error;
use serde::{Deserialize, Serialize};

use super::{Measured, Unit};

/// Something that could not be looked at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gap {
    /// Cause id or facility.
    pub what: String,
    /// Why, with the remedy where there is one.
    pub why: String,
    /// The cause that could not be judged for it; none where it only blurs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Why, for programs.
    #[serde(default)]
    pub reason: Unseen,
    /// How much was not seen, where that was counted, against what is let pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
}

/// Why something was not seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unseen {
    /// The kernel or the privileges did not allow it.
    Refused,
    /// Some of it was not looked at, to stay cheap.
    Partial,
    /// Events were lost: what keeps them was full.
    Lost,
    /// The recording has nothing about it.
    #[default]
    NotRecorded,
    /// The capture was killed before it was written.
    CutShort,
    /// It happens where the kernel does not look, inside the program.
    InsideTheProgram,
    /// It was seen, and does not say enough to decide.
    Undecided,
    /// Two recordings that do not bear comparison.
    NotComparable,
}

/// Of the kinds of which some is always lost or not looked at: from this share on it is told.
pub(crate) const WORTH_A_WORD: f64 = 0.01;

impl Gap {
    pub(crate) fn new(what: &str, reason: Unseen, why: impl Into<String>) -> Self {
        Self { what: what.to_string(), why: why.into(), reason, ..Self::default() }
    }

    /// A table or a source that the recording does not have.
    pub(crate) fn not_recorded(what: &str, why: impl Into<String>) -> Self {
        Self::new(what, Unseen::NotRecorded, why)
    }

    /// Something of which a share was not seen.
    pub(crate) fn of_share(self, unseen: f64) -> Self {
        Self { measured: Some(Measured::new(unseen, WORTH_A_WORD, Unit::Share)), ..self }
    }

    /// The same as what keeps a cause from being judged.
    pub(crate) fn of_cause(self, cause: &str) -> Self {
        Self { what: cause.to_string(), cause: Some(cause.to_string()), ..self }
    }
}

impl From<&tables::Gap> for Gap {
    fn from(said: &tables::Gap) -> Self {
        let code = IntoDeserializer::<Error>::into_deserializer(said.reason.as_str());
        let gap = Self::new(&said.what, Unseen::deserialize(code).unwrap_or(Unseen::Refused), &said.why);
        if said.unseen_share > 0.0 { gap.of_share(said.unseen_share) } else { gap }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_collector_said_keeps_its_reason_and_its_number() {
        let partial = Gap::from(&tables::Gap::partial("walk", 0.25, "too many"));
        assert_eq!((partial.reason, partial.measured), (Unseen::Partial, Some(Measured::new(0.25, 0.01, Unit::Share))));
        let refused = Gap::from(&tables::Gap::refused("call", "no"));
        assert_eq!((refused.reason, refused.measured, refused.cause), (Unseen::Refused, None, None));
        // A recording of another version: a reason that this one does not know.
        let other = tables::Gap { reason: "eclipse".into(), ..tables::Gap::refused("x", "y") };
        assert_eq!(Gap::from(&other).reason, Unseen::Refused);
    }
}
