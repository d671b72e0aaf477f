// SPDX-License-Identifier: Apache-2.0
//! Which end of a connection made it: column `role` of several tables.

use crate::tables::{Connection, Drop, Exchange, Label, Request, Retransmit, SocketState};

/// A client made it, and the target accepted it.
pub const ACCEPTED: &str = "accepted";

/// The target made it.
pub const MADE: &str = "made";

/// What peers, or ports, are called together of which there are more than are told apart.
pub const OTHERS: &str = "others";

macro_rules! roles {
    ($($row:ident,)*) => {
        $(
            impl $row {
                /// Whether a client made the connection.
                pub fn is_accepted(&self) -> bool {
                    self.role == ACCEPTED
                }

                /// Whether the target made it. Neither is said of a connection that is not known to be one of its own.
                pub fn is_made(&self) -> bool {
                    self.role == MADE
                }
            }
        )*
    };
}

roles! {
    Connection,
    Drop,
    Exchange,
    Label,
    Request,
    Retransmit,
    SocketState,
}
