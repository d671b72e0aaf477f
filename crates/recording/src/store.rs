// SPDX-License-Identifier: Apache-2.0
//! Rows in memory, by type: what a reader returns and what tests build by hand.

use std::any::Any;
use std::collections::HashMap;

use crate::Table;

/// All rows of a recording. A table that is missing from the recording has no entry here, which
/// is not the same as a table without rows.
#[derive(Default)]
pub struct Tables {
    by_name: HashMap<&'static str, Box<dyn Any + Send + Sync>>,
}

impl Tables {
    /// Rows of a table, in file order; empty where the table is missing.
    pub fn rows<T: Table + Send + Sync>(&self) -> &[T] {
        self.by_name.get(T::NAME).and_then(|rows| rows.downcast_ref::<Vec<T>>()).map_or(&[], Vec::as_slice)
    }

    /// Names of the tables that are there.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.by_name.keys().copied()
    }

    /// Whether the recording has this table at all.
    pub fn has<T: Table>(&self) -> bool {
        self.by_name.contains_key(T::NAME)
    }

    /// The rows of a table, to be changed; empty where it is missing.
    pub fn rows_mut<T: Table + Send + Sync>(&mut self) -> &mut [T] {
        let rows = self.by_name.get_mut(T::NAME).and_then(|rows| rows.downcast_mut::<Vec<T>>());
        rows.map_or(&mut [], Vec::as_mut_slice)
    }

    /// Changes the rows of a table, where it is there.
    pub(crate) fn change<T: Table + Send + Sync>(&mut self, change: impl FnOnce(&mut Vec<T>)) {
        if let Some(rows) = self.by_name.get_mut(T::NAME).and_then(|rows| rows.downcast_mut()) {
            change(rows);
        }
    }

    /// Leaves only those rows of a table that `keep` wants.
    pub(crate) fn retain<T: Table + Send + Sync>(&mut self, keep: impl FnMut(&T) -> bool) {
        self.change(|rows: &mut Vec<T>| rows.retain(keep));
    }

    /// Adds rows to a table, making it if need be.
    pub fn extend<T: Table + Send + Sync>(&mut self, rows: impl IntoIterator<Item = T>) {
        let slot = self.by_name.entry(T::NAME).or_insert_with(|| Box::new(Vec::<T>::new()));
        if let Some(all) = slot.downcast_mut::<Vec<T>>() {
            all.extend(rows);
        }
    }
}
