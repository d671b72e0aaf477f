// SPDX-License-Identifier: Apache-2.0
//! Programs that are loaded when they are first needed, because most captures never need them.

use std::mem::{MaybeUninit, replace};

use anyhow::Result;
use libbpf_rs::OpenObject;

/// A probe that may be loaded later.
pub enum Lazy<'o, T> {
    /// Not tried yet; where it will stand.
    NotLoaded(&'o mut MaybeUninit<OpenObject>),
    /// Ready.
    Loaded(Box<T>),
    /// The kernel refused it, for this reason.
    Refused(String),
}

impl<'o, T> Lazy<'o, T> {
    /// Loads it, unless that was tried before; `None` = it was refused.
    pub fn get(&mut self, load: impl FnOnce(&'o mut MaybeUninit<OpenObject>) -> Result<T>) -> Option<&mut T> {
        if let Self::NotLoaded(_) = self
            && let Self::NotLoaded(storage) = replace(self, Self::Refused(String::new()))
        {
            *self = match load(storage) {
                Ok(loaded) => Self::Loaded(Box::new(loaded)),
                Err(why) => Self::Refused(format!("{why:#}")),
            };
        }
        self.loaded_mut()
    }

    /// Whether it was loaded or refused.
    pub fn is_tried(&self) -> bool {
        !matches!(self, Self::NotLoaded(_))
    }

    /// What was loaded.
    pub fn loaded(&self) -> Option<&T> {
        if let Self::Loaded(loaded) = self { Some(loaded) } else { None }
    }

    /// The same, to work with.
    pub fn loaded_mut(&mut self) -> Option<&mut T> {
        if let Self::Loaded(loaded) = self { Some(loaded) } else { None }
    }

    /// Why there is none, where the kernel refused it.
    pub fn refused(&self) -> Option<&str> {
        if let Self::Refused(why) = self { Some(why) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_remembered() {
        let mut storage = MaybeUninit::uninit();
        let mut probe: Lazy<'_, u32> = Lazy::NotLoaded(&mut storage);
        assert!(!probe.is_tried() && probe.refused().is_none() && probe.loaded().is_none(), "nobody has asked for it");
        assert!(probe.get(|_| anyhow::bail!("too old")).is_none());
        assert!(probe.get(|_| Ok(7)).is_none(), "it is not tried again");
        assert!(probe.is_tried() && probe.refused() == Some("too old"));
    }

    #[test]
    fn what_is_loaded_stays() {
        let mut storage = MaybeUninit::uninit();
        let mut probe: Lazy<'_, u32> = Lazy::NotLoaded(&mut storage);
        assert_eq!((probe.get(|_| Ok(7)).copied(), probe.get(|_| Ok(8)).copied()), (Some(7), Some(7)));
        assert_eq!((probe.loaded().copied(), probe.refused()), (Some(7), None));
    }
}
