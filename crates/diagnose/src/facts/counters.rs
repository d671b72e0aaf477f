// SPDX-License-Identifier: Apache-2.0
//! Kernel counters of the window: differences of counters, last values of gauges.
//!
//! A row is written only when the value changed, so a reading holds until the next one. A counter
//! that went backwards (a reset, another namespace) has no difference rather than a wrong one.

use std::collections::BTreeMap;

use recording::counters::Key;
use recording::tables;

use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::statistics::ratio;

type Readings = Vec<(u64, f64)>;

/// All counters, by source, entity and name.
pub struct Counters {
    by_source: BTreeMap<String, BTreeMap<String, BTreeMap<String, Readings>>>,
}

impl Fact for Counters {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let rows = case.recording.rows::<tables::Counter>();
        if rows.is_empty() {
            return Err(Gap::not_recorded("counter", "the recording has no kernel counters: the samplers did not run"));
        }
        let mut by_source: BTreeMap<String, BTreeMap<String, BTreeMap<String, Readings>>> = BTreeMap::new();
        for row in rows.iter().filter(|r| r.value.is_finite()) {
            let entities = by_source.entry(row.source.clone()).or_default();
            let names = entities.entry(row.entity.clone()).or_default();
            names.entry(row.name.clone()).or_default().push((row.t_ns, row.value));
        }
        for readings in by_source.values_mut().flat_map(BTreeMap::values_mut).flat_map(BTreeMap::values_mut) {
            readings.sort_by_key(|reading| reading.0);
        }
        Ok(Counters { by_source })
    }
}

/// A gauge by time: a reading holds until the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mean {
    /// Average.
    pub value: f64,
    /// Share of the window in which it was above zero.
    pub above_zero: f64,
}

impl Counters {
    fn readings(&self, key: Key, entity: &str) -> Option<&Readings> {
        debug_assert!(key.entity.is_none_or(|own| own == entity), "{key:?} is none of {entity}'s");
        self.by_source.get(key.source)?.get(entity)?.get(key.name)
    }

    /// Entities that `source` was read for.
    pub fn entities(&self, source: &str) -> impl Iterator<Item = &str> {
        self.by_source.get(source).into_iter().flat_map(|e| e.keys().map(String::as_str))
    }

    /// Growth of a counter from the first to the last reading; none if it was not read or shrank.
    pub fn delta(&self, key: Key, entity: &str) -> Option<f64> {
        let readings = self.readings(key, entity)?;
        let grew = readings.last()?.1 - readings.first()?.1;
        (grew >= 0.0).then_some(grew)
    }

    /// Growth of a counter that only one entity has.
    pub fn grew(&self, key: Key) -> Option<f64> {
        self.delta(key, key.entity?)
    }

    /// Growth of several of them together; none if not one of them was read.
    pub fn grew_together(&self, keys: &[Key]) -> Option<f64> {
        keys.iter().filter_map(|key| self.grew(*key)).reduce(|a, b| a + b)
    }

    /// Growth of a counter between two moments, ns, by the readings nearest to them; none if it was not read or shrank.
    pub fn delta_between(&self, key: Key, entity: &str, moments: (u64, u64)) -> Option<f64> {
        let readings = self.readings(key, entity)?;
        let near = |t: u64| {
            let after = readings.partition_point(|reading| reading.0 < t);
            let beside = readings.get(after.saturating_sub(1)..readings.len().min(after + 1)).unwrap_or_default();
            beside.iter().min_by_key(|reading| reading.0.abs_diff(t)).map(|reading| reading.1)
        };
        let grew = near(moments.1)? - near(moments.0)?;
        (grew >= 0.0).then_some(grew)
    }

    /// Last value.
    pub fn last(&self, key: Key, entity: &str) -> Option<f64> {
        Some(self.readings(key, entity)?.last()?.1)
    }

    /// Highest value.
    pub fn max(&self, key: Key, entity: &str) -> Option<f64> {
        self.readings(key, entity)?.iter().map(|r| r.1).max_by(f64::total_cmp)
    }

    /// Whether a gauge was above zero at every reading, never fell, and is higher in the end: of three readings or more.
    pub fn only_grows(&self, key: Key, entity: &str) -> bool {
        let Some(readings) = self.readings(key, entity) else { return false };
        let rises = readings.windows(2).all(|pair| pair[0].1 > 0.0 && pair[1].1 >= pair[0].1);
        readings.len() >= 3 && rises && readings.last().map(|last| last.1) > readings.first().map(|first| first.1)
    }

    /// Whether a gauge was above zero at every reading and never fell. One that stays the same is written once in a while.
    pub fn never_falls(&self, key: Key, entity: &str) -> bool {
        let Some(readings) = self.readings(key, entity) else { return false };
        readings.iter().all(|reading| reading.1 > 0.0) && readings.is_sorted_by(|a, b| a.1 <= b.1)
    }

    /// A gauge over a window of `length_ns`; none if it was not read.
    pub fn mean(&self, key: Key, entity: &str, length_ns: f64) -> Option<Mean> {
        let readings = self.readings(key, entity)?;
        let ends = readings.iter().skip(1).map(|r| r.0 as f64).chain([length_ns]);
        let mut mean = Mean::default();
        for (reading, end) in readings.iter().zip(ends) {
            let part = ratio((end - reading.0 as f64).max(0.0), length_ns);
            mean.value += reading.1 * part;
            mean.above_zero += if reading.1 > 0.0 { part } else { 0.0 };
        }
        Some(mean)
    }

    /// Share of a window of `length_ns` in which a gauge was so; none if it was not read.
    pub fn share_of_time(&self, key: Key, entity: &str, length_ns: f64, is_so: impl Fn(f64) -> bool) -> Option<f64> {
        let readings = self.readings(key, entity)?;
        let ends = readings.iter().skip(1).map(|r| r.0 as f64).chain([length_ns]);
        let parts = readings.iter().zip(ends).filter(|(reading, _)| is_so(reading.1));
        Some(parts.map(|(reading, end)| ratio((end - reading.0 as f64).max(0.0), length_ns)).sum())
    }

    /// Share of a window of `length_ns` in which a gauge was at its limit, which is another gauge of the entity; 0 = never, or not known.
    pub fn share_at_limit(&self, (gauge, limit): (Key, Key), entity: &str, length_ns: f64) -> f64 {
        let Some(limit) = self.last(limit, entity) else { return 0.0 };
        self.share_of_time(gauge, entity, length_ns, |value| value >= limit.max(1.0)).unwrap_or(0.0)
    }

    /// Sum of the growth of several counters of one entity; none if not one of them was read.
    pub fn delta_sum(&self, keys: &[Key], entity: &str) -> Option<f64> {
        keys.iter().filter_map(|key| self.delta(*key, entity)).reduce(|a, b| a + b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn differences_and_gauges() {
        let recording = parse(
            "counter t_ns=9 source=s entity=e name=n value=30
             counter t_ns=0 source=s entity=e name=n value=10
             counter t_ns=5 source=s entity=e name=n value=50
             counter t_ns=0 source=s entity=e name=back value=10
             counter t_ns=9 source=s entity=e name=back value=9",
        )
        .unwrap();
        let c = Case::new(&recording).fact::<Counters>().unwrap();
        let [n, back, x] = ["n", "back", "x"].map(|name| Key { source: "s", name, entity: None });
        assert_eq!((c.delta(n, "e"), c.last(n, "e"), c.max(n, "e")), (Some(20.0), Some(30.0), Some(50.0)));
        assert_eq!((c.delta(back, "e"), c.delta(n, ""), c.delta_sum(&[n, x], "e")), (None, None, Some(20.0)));
        let mean = c.mean(n, "e", 10.0).unwrap();
        assert_eq!((mean.value, mean.above_zero, c.mean(n, "", 1.0)), (28.0, 1.0, None));
        assert_eq!(c.share_of_time(n, "e", 10.0, |value| value >= 30.0), Some(0.5));
        assert_eq!(c.entities("s").collect::<Vec<_>>(), ["e"]);
    }
}
