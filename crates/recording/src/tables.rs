// SPDX-License-Identifier: Apache-2.0
//! The tables. A row struct is the schema: units are in the column names, the doc comments are the
//! text of `SCHEMA.md`. To add a table: one file here, one line in the list below, which says how its rows lie in time.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};

/// A row type that is kept as one table.
pub trait Table: Serialize + DeserializeOwned + JsonSchema + Clone + 'static {
    /// File name without ending, and heading in the documentation.
    const NAME: &'static str;

    /// The times of the rows in which something of a part of the recording may be.
    fn looked_through(_: &Range<u64>) -> Range<u64> {
        0..u64::MAX
    }

    /// What of this row lies in the part, in the part's own time; `None` = nothing.
    fn within(&self, _: &Range<u64>) -> Option<Self> {
        Some(self.clone())
    }

    /// Leaves out what is made needless by other rows of a part that begins at `start_ns`.
    fn condense(_: &mut Vec<Self>, _start_ns: u64) {}
}

/// Something that is done with each table.
pub(crate) trait Visit {
    fn table<T: Table + Send + Sync>(&mut self) -> anyhow::Result<()>;
}

/// How the rows of a table lie in time.
macro_rules! time {
    // Told once, of the whole recording.
    (whole) => {};
    // Of the slice that ends at `t_ns`.
    (slice) => {
        fn looked_through(part: &Range<u64>) -> Range<u64> {
            part.start.saturating_add(1)..part.end.saturating_add(1)
        }
        fn within(&self, part: &Range<u64>) -> Option<Self> {
            let inside = self.t_ns > part.start && self.t_ns <= part.end;
            inside.then(|| Self { t_ns: self.t_ns - part.start, ..self.clone() })
        }
    };
    // Of the moment `t_ns`.
    (moment) => {
        fn looked_through(part: &Range<u64>) -> Range<u64> {
            part.clone()
        }
        fn within(&self, part: &Range<u64>) -> Option<Self> {
            part.contains(&self.t_ns).then(|| Self { t_ns: self.t_ns - part.start, ..self.clone() })
        }
    };
    // Of a moment, with other times that lie before it.
    (moment, $($earlier:ident),+) => {
        fn looked_through(part: &Range<u64>) -> Range<u64> {
            part.clone()
        }
        fn within(&self, part: &Range<u64>) -> Option<Self> {
            part.contains(&self.t_ns).then(|| Self {
                t_ns: self.t_ns - part.start,
                $($earlier: self.$earlier.saturating_sub(part.start),)+
                ..self.clone()
            })
        }
    };
    // As the row's own file says.
    (own) => {
        fn looked_through(part: &Range<u64>) -> Range<u64> {
            Self::times(part)
        }
        fn within(&self, part: &Range<u64>) -> Option<Self> {
            self.part(part)
        }
    };
    // A state that holds until the next row of the same name.
    (state) => {
        time!(own);
        fn condense(rows: &mut Vec<Self>, start_ns: u64) {
            Self::keep_last_of_start(rows, start_ns);
        }
    };
}

/// Declares the modules and makes each row type a [`Table`] of the module's name.
macro_rules! tables {
    ($($module:ident::$row:ident: $time:tt $(($($earlier:ident),+))?,)*) => {
        $(
            pub mod $module;
            pub use $module::$row;
            impl Table for $row {
                const NAME: &'static str = stringify!($module);
                time!($time $(, $($earlier),+)?);
            }
        )*
        /// Name of every table, in the order of the list.
        pub const NAMES: &[&str] = &[$(stringify!($module)),*];
        /// Name and JSON schema of every table, in the order of the list.
        pub(crate) fn all() -> Vec<(&'static str, schemars::Schema)> {
            vec![$((<$row as Table>::NAME, schemars::schema_for!($row)),)*]
        }
        /// Does something with each table, in the order of the list.
        pub(crate) fn each(visit: &mut impl Visit) -> anyhow::Result<()> {
            $(visit.table::<$row>()?;)*
            Ok(())
        }
        /// Adds one row, given as JSON, to the table called `name`; false = there is no such table.
        pub(crate) fn push_json(name: &str, row: serde_json::Value, into: &mut crate::Tables) -> serde_json::Result<bool> {
            match name {
                $(stringify!($module) => into.extend([serde_json::from_value::<$row>(row)?]),)*
                _ => return Ok(false),
            }
            Ok(true)
        }
    };
}

tables! {
    process::Process: own,
    thread::Thread: slice,
    wait::Wait: slice,
    wakeup::Wakeup: own,
    wait_stack::WaitStack: moment,
    standing::Standing: slice,
    sample::Sample: moment,
    stack::Stack: whole,
    frame::Frame: whole,
    call_window::CallWindow: moment,
    call::Call: whole,
    call_latency::CallLatency: whole,
    call_example::CallExample: moment,
    neighbour::Neighbour: slice,
    connection::Connection: slice,
    exchange::Exchange: slice,
    exchange_window::ExchangeWindow: slice,
    label::Label: slice,
    retransmit::Retransmit: slice,
    drop::Drop: slice,
    socket_state::SocketState: own,
    request::Request: moment (began_ns, read_ns, rest_ns),
    burst::Burst: own,
    birth::Birth: moment,
    counter::Counter: state,
    setting::Setting: whole,
    file_lock::FileLock: slice,
    death::Death: slice,
    gap::Gap: whole,
    loss::Loss: slice,
    cost::Cost: slice,
    load_second::LoadSecond: slice,
    load_latency::LoadLatency: slice,
}
