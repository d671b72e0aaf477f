// SPDX-License-Identifier: Apache-2.0
//! The tables. A row struct is the schema: units are in the column names, the doc comments are the
//! text of `SCHEMA.md`. To add a table: one file here, one line in the list below.

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};

/// A row type that is kept as one table.
pub trait Table: Serialize + DeserializeOwned + JsonSchema + 'static {
    /// File name without ending, and heading in the documentation.
    const NAME: &'static str;
}

/// Something that is done with each table.
pub(crate) trait Visit {
    fn table<T: Table + Send + Sync>(&mut self) -> anyhow::Result<()>;
}

/// Declares the modules and makes each row type a [`Table`] of the module's name.
macro_rules! tables {
    ($($module:ident::$row:ident,)*) => {
        $(
            pub mod $module;
            pub use $module::$row;
            impl Table for $row { const NAME: &'static str = stringify!($module); }
        )*
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
    process::Process,
    thread::Thread,
    wait::Wait,
    wakeup::Wakeup,
    wait_stack::WaitStack,
    sample::Sample,
    stack::Stack,
    frame::Frame,
    call_window::CallWindow,
    call::Call,
    call_latency::CallLatency,
    call_example::CallExample,
    neighbour::Neighbour,
    connection::Connection,
    exchange::Exchange,
    exchange_window::ExchangeWindow,
    label::Label,
    retransmit::Retransmit,
    request::Request,
    burst::Burst,
    counter::Counter,
    setting::Setting,
    gap::Gap,
    loss::Loss,
    cost::Cost,
    load_second::LoadSecond,
    load_latency::LoadLatency,
}
