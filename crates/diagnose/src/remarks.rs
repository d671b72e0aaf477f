// SPDX-License-Identifier: Apache-2.0
//! What neutral verdicts say besides: no cause and no accusation, but a reader must know it.

pub(crate) mod children;
pub(crate) mod unnamed;
