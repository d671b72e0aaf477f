// SPDX-License-Identifier: Apache-2.0
//! Opinions that more than one rule or remark holds: from which number on something is full, or matters. Facts have none, and
//! what only one rule thinks stands there.

pub(crate) mod asked;
pub(crate) mod backoff;
pub(crate) mod behind;
pub(crate) mod churn;
pub(crate) mod clients_wait;
pub(crate) mod drips;
pub(crate) mod dropped_here;
pub(crate) mod enough;
pub(crate) mod errors;
pub(crate) mod felt;
pub(crate) mod full;
pub(crate) mod handshakes;
pub(crate) mod hanging;
pub(crate) mod holders;
pub(crate) mod hung;
pub(crate) mod in_parts;
pub(crate) mod limited;
pub(crate) mod meanwhile;
pub(crate) mod nagle;
pub(crate) mod often;
pub(crate) mod one_each;
pub(crate) mod paths;
pub(crate) mod poller;
pub(crate) mod secure;
pub(crate) mod short_memory;
pub(crate) mod silent;
pub(crate) mod slow_start;
pub(crate) mod standing;
pub(crate) mod standstill;
pub(crate) mod streams;
pub(crate) mod tail;
pub(crate) mod time_wait;
pub(crate) mod untaken;
pub(crate) mod waits_for_turn;
