// SPDX-License-Identifier: Apache-2.0
//! Keeps the readings that say something new.

use std::collections::HashMap;

use recording::counters::Key;
use recording::tables::Counter;

/// The last value of every counter, by source, entity and name.
#[derive(Debug, Default)]
pub struct Changes {
    known: HashMap<String, HashMap<String, HashMap<String, f64>>>,
}

impl Changes {
    /// Rows whose value differs from the last one, or that are new.
    pub fn keep(&mut self, mut rows: Vec<Counter>) -> Vec<Counter> {
        rows.retain(|row| self.is_news(row));
        rows
    }

    /// Entities of which a source said something else than 0 under a name, and says nothing any more.
    pub fn gone(&self, key: Key, rows: &[Counter]) -> Vec<String> {
        let said = self.known.get(key.source).into_iter().flatten();
        let said = said.filter(|(_, names)| names.get(key.name).is_some_and(|value| *value != 0.0));
        let is_there = |entity: &str| {
            rows.iter().any(|row| row.entity == entity && row.name == key.name && row.source == key.source)
        };
        said.map(|(entity, _)| entity.clone()).filter(|entity| !is_there(entity)).collect()
    }

    /// Forgets what a source said of entities that nobody will read again.
    pub fn forget(&mut self, source: &str, is_gone: impl Fn(&str) -> bool) {
        if let Some(of) = self.known.get_mut(source) {
            of.retain(|entity, _| !is_gone(entity));
        }
    }

    fn is_news(&mut self, row: &Counter) -> bool {
        // Looked up by reference first: nearly every row is known, and a key costs three allocations.
        let known = self.known.get_mut(&row.source).and_then(|of| of.get_mut(&row.entity)?.get_mut(&row.name));
        match known {
            Some(value) if value.to_bits() == row.value.to_bits() => false,
            Some(value) => {
                *value = row.value;
                true
            }
            None => {
                let entities = self.known.entry(row.source.clone()).or_default();
                entities.entry(row.entity.clone()).or_default().insert(row.name.clone(), row.value);
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_first_and_changed_rows_are_kept() {
        let row = |entity: &str, value| Counter { entity: entity.into(), value, ..Counter::default() };
        let mut changes = Changes::default();
        assert_eq!(changes.keep(vec![row("a", 0.0), row("b", 1.0)]).len(), 2);
        assert_eq!(changes.keep(vec![row("a", 0.0), row("b", 2.0), row("c", 0.0)]), [row("b", 2.0), row("c", 0.0)]);
        assert_eq!(changes.keep(vec![row("b", 1.0)]), [row("b", 1.0)]);
        changes.forget("", |entity| entity == "b");
        assert_eq!(changes.keep(vec![row("a", 0.0), row("b", 1.0)]), [row("b", 1.0)]);
    }
}
