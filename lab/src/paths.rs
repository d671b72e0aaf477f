// SPDX-License-Identifier: Apache-2.0
//! Where things are: the repository, what was built, what runs leave behind.

use std::env;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};

/// The folders of one checkout.
#[derive(Clone, Debug)]
pub struct Paths {
    /// The checkout.
    pub repository: PathBuf,
    /// Cargo's target folder.
    pub target: PathBuf,
    /// The wakewalk binary under test.
    pub wakewalk: PathBuf,
    /// Held as long as anybody has these: two labs at once would read each other's verdicts.
    _lock: Arc<File>,
}

impl Paths {
    /// Finds the checkout that the current folder is in.
    ///
    /// # Errors
    /// The current folder is in none, or another lab runs there.
    pub fn find(wakewalk: Option<PathBuf>) -> Result<Self> {
        let here = env::current_dir().context("failed to read the current folder")?;
        let Some(repository) = here.ancestors().find(|d| d.join("lab/scenarios").is_dir()) else {
            bail!("`{}` is not in a checkout of wakewalk; change into one", here.display());
        };
        let target = match env::var_os("CARGO_TARGET_DIR") {
            Some(dir) => repository.join(dir),
            None => repository.join("target"),
        };
        // The two are built together and lie in the same folder, whatever cargo calls it.
        let own = env::current_exe().context("failed to find the lab's own binary")?;
        let wakewalk = wakewalk.unwrap_or_else(|| own.with_file_name("wakewalk"));
        let lock = Arc::new(lock(&target.join("lab"))?);
        Ok(Self { repository: repository.to_path_buf(), target, wakewalk, _lock: lock })
    }

    /// The same with another wakewalk.
    #[must_use]
    pub fn with_wakewalk(&self, wakewalk: PathBuf) -> Self {
        Self { wakewalk, ..self.clone() }
    }

    /// What the lab makes: `target/lab`.
    pub fn lab(&self) -> PathBuf {
        self.target.join("lab")
    }

    /// What the benchmark makes: `target/bench`.
    pub fn bench(&self) -> PathBuf {
        self.target.join("bench")
    }

    /// Built services.
    pub fn bin(&self) -> PathBuf {
        self.lab().join("bin")
    }

    /// Recording of a scenario's last run.
    pub fn recording(&self, name: &str) -> PathBuf {
        self.lab().join("recordings").join(name)
    }

    /// Output of the programs of a scenario's last run.
    pub fn logs(&self, name: &str) -> PathBuf {
        self.lab().join("logs").join(name)
    }

    /// Golden recordings.
    pub fn fixtures(&self) -> PathBuf {
        fixtures(&self.repository)
    }
}

/// The lock of a folder, which the kernel takes back when its holder ends, however it ends.
fn lock(dir: &Path) -> Result<File> {
    fs::create_dir_all(dir).with_context(|| format!("failed to make `{}`", dir.display()))?;
    let path = dir.join("lock");
    let file = File::create(&path).with_context(|| format!("failed to open `{}`", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => bail!("another lab runs in `{}`; wait for its end", dir.display()),
        Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("failed to lock `{}`", path.display())),
    }
}

/// Golden recordings of the checkout in `repository`.
pub fn fixtures(repository: &Path) -> PathBuf {
    repository.join("lab/fixtures")
}

#[cfg(test)]
mod tests {
    use super::lock;

    #[test]
    fn one_lab_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let first = lock(dir.path()).unwrap();
        assert!(lock(dir.path()).unwrap_err().to_string().contains("another lab runs in"));
        drop(first);
        assert!(lock(dir.path()).is_ok());
    }
}
