//! One process owns a store. The lock is the operating system's, so it ends with its process,
//! however that ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::error::OpenError;

/// Held while the store is open.
#[derive(Debug)]
pub(crate) struct Ownership {
    _lock: File,
}

impl Ownership {
    /// Takes the store at `path`, or says who has it.
    pub(crate) fn take(path: &Path) -> Result<Self, OpenError> {
        let lock_path = lock_path(path);
        let failed = |source| OpenError::File { path: lock_path.clone(), source };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&lock_path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut owner = String::new();
                file.read_to_string(&mut owner).map_err(failed)?;
                return Err(OpenError::Owned {
                    path: path.to_owned(),
                    owner: owner.trim().to_owned(),
                });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        file.set_len(0).map_err(failed)?;
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        writeln!(file, "{}", std::process::id()).map_err(failed)?;
        Ok(Self { _lock: file })
    }
}

fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-lock");
    name.into()
}
