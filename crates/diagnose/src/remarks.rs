// SPDX-License-Identifier: Apache-2.0
//! What verdicts say besides: no cause and no accusation, but a reader must know it.

use crate::case::Case;
use crate::statement::Statement;

pub(crate) mod besides_hang;
pub(crate) mod children;
pub(crate) mod chosen_polling;
pub(crate) mod churn;
pub(crate) mod collecting;
pub(crate) mod deadlocked;
pub(crate) mod each_other;
pub(crate) mod event_loop;
pub(crate) mod goes_on;
pub(crate) mod hidden_queues;
pub(crate) mod hints;
pub(crate) mod idle;
pub(crate) mod in_line;
pub(crate) mod in_parts;
pub(crate) mod inner_queues;
pub(crate) mod largest_line;
pub(crate) mod many_questions;
pub(crate) mod neighbours;
pub(crate) mod never_closed;
pub(crate) mod own_clients;
pub(crate) mod own_queue;
pub(crate) mod own_work;
pub(crate) mod response_times;
pub(crate) mod slo;
pub(crate) mod slow_label;
pub(crate) mod standing;
pub(crate) mod stood_still;
pub(crate) mod streams;
pub(crate) mod unnamed;
pub(crate) mod until_said;

/// Something to say beside a verdict.
#[derive(Debug)]
pub(crate) struct Remark {
    /// For the headline, behind a semicolon; empty = nothing.
    pub headline: String,
    /// The next step, where it is a better one than the verdict's.
    pub advice: Option<String>,
    /// For the details, sentences.
    pub detail: String,
}

/// What tempers the word that the work is honest and spread out.
pub(crate) fn at_capacity(case: &Case) -> Vec<Remark> {
    const ALL: [fn(&Case) -> Option<Remark>; 13] = [
        until_said::remark,
        chosen_polling::remark,
        event_loop::remark,
        own_queue::remark,
        hints::remark,
        hints::handed_around,
        children::remark,
        unnamed::remark,
        churn::remark,
        in_parts::remark,
        never_closed::remark,
        deadlocked::remark,
        stood_still::remark,
    ];
    ALL.into_iter().filter_map(|remark| remark(case)).collect()
}

/// Puts them behind what is said.
pub(crate) fn add(statement: &mut Statement, remarks: &[Remark]) {
    statement.headline += &headlines(remarks);
    statement.detail += &details(remarks);
}

/// What is behind the headline.
pub(crate) fn headlines(remarks: &[Remark]) -> String {
    remarks.iter().filter(|r| !r.headline.is_empty()).map(|r| format!("; {}", r.headline)).collect()
}

/// What is behind the details.
pub(crate) fn details(remarks: &[Remark]) -> String {
    remarks.iter().map(|r| format!(" {}", r.detail)).collect()
}
