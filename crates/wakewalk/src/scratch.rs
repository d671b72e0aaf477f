// SPDX-License-Identifier: Apache-2.0
//! A folder for a recording that is not to be kept.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, io};

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::process::geteuid;
use tempfile::{Builder, TempDir};

use crate::cleanup::{Left, Listed};

/// What the names of such folders begin with.
const PREFIX: &str = ".wakewalk-scratch-";
/// And letters behind that.
const LETTERS: usize = 6;
/// One that is younger may not have its lock yet.
const YOUNG: Duration = Duration::from_secs(60);

/// A folder that is gone when it is dropped, or when we are ended in the middle.
pub struct Scratch {
    _listed: Listed,
    dir: TempDir,
    /// Tells others that somebody is at it, until the kernel closes it.
    _lock: File,
}

impl Scratch {
    fn new_in(place: &Path) -> io::Result<Self> {
        let dir = Builder::new().prefix(PREFIX).rand_bytes(LETTERS).tempdir_in(place)?;
        let lock = File::open(dir.path())?;
        let _ = flock(&lock, FlockOperation::LockExclusive); // a place that refuses it refuses it to those who sweep, too
        Ok(Self { _listed: Listed::new(Left::Folder(dir.path().to_path_buf())), dir, _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// A folder where temporary files belong, or, in a root directory that has no such place, in memory or where we stand.
pub fn folder() -> Result<Scratch> {
    let first = env::temp_dir();
    let places = [first.clone(), PathBuf::from("/dev/shm"), PathBuf::from("/run"), PathBuf::from(".")];
    let made = places.iter().find_map(|place| Scratch::new_in(place).ok());
    // Nowhere else: other places may not answer, as a file system of which somebody wants to know why.
    made.iter().filter_map(|made| made.path().parent()).for_each(sweep);
    made.map_or_else(|| Scratch::new_in(&first), Ok).with_context(|| {
        format!("failed to make a folder for the recording in `{}`; set TMPDIR to a folder with room", first.display())
    })
}

/// Removes what those of us left who were killed (SIGKILL, out of memory): nobody has its lock.
fn sweep(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let letters = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let is_ours = letters.is_some_and(|letters| letters.len() == LETTERS);
        if is_ours && entry.metadata().is_ok_and(|it| it.is_dir() && it.uid() == geteuid().as_raw() && is_old(&it)) {
            let _ = remove_if_left(&entry.path()); // somebody is at it, or has been quicker
        }
    }
}

fn is_old(it: &fs::Metadata) -> bool {
    it.modified().ok().and_then(|since| since.elapsed().ok()).is_some_and(|age| age > YOUNG)
}

fn remove_if_left(dir: &Path) -> io::Result<()> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let opened = fs::OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(dir)?;
    flock(&opened, FlockOperation::NonBlockingLockExclusive)?;
    fs::remove_dir_all(dir)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    #[test]
    fn what_was_left_is_removed_and_what_is_in_use_is_not() {
        let place = tempfile::tempdir().unwrap();
        let (left, young, used) = ("killed", "begins", Scratch::new_in(place.path()).unwrap());
        let path = |name: &str| place.path().join(format!("{PREFIX}{name}"));
        let age = |dir: &Path| File::open(dir).unwrap().set_modified(SystemTime::now() - 2 * YOUNG).unwrap();
        for name in [left, young] {
            fs::create_dir(path(name)).unwrap();
            fs::write(path(name).join("meta.json"), "{}").unwrap();
        }
        let another = path("of-somebody");
        fs::create_dir(&another).unwrap();
        for dir in [&path(left), used.path(), &another] {
            age(dir);
        }
        sweep(place.path());
        assert!(!path(left).exists() && path(young).exists() && used.path().exists());
        assert!(another.exists());
        let dir = used.path().to_path_buf();
        drop(used);
        assert!(!dir.exists());
    }
}
