// SPDX-License-Identifier: Apache-2.0
//! File systems: which of them a disk holds, told by the magic number of a file, or by the functions in which somebody
//! waits.

/// Where the files of a file system are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// On a disk of this host, mostly.
    Disk,
    /// In memory, or nowhere: the kernel makes them up.
    Nothing,
    /// A program in user space serves them.
    Program,
    /// Another host serves them.
    Host,
}

/// A file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// Its name as mount(8) has it, where that is one.
    pub name: &'static str,
    /// Where its files are.
    pub holds: Holds,
}

impl FileSystem {
    /// Whether somebody else than a disk or the kernel is waited for there.
    pub fn is_elsewhere(&self) -> bool {
        matches!(self.holds, Holds::Program | Holds::Host)
    }
}

use Holds::{Disk, Host, Nothing, Program};

/// Magic numbers: `linux/magic.h`, and those that file systems define themselves.
const MAGIC: &[(u32, &str, Holds)] = &[
    (0x0000_ef53, "ext4", Disk),
    (0x5846_5342, "xfs", Disk),
    (0x9123_683e, "btrfs", Disk),
    (0xf2f5_2010, "f2fs", Disk),
    (0xca45_1a4e, "bcachefs", Disk),
    (0x2fc1_2fc1, "zfs", Disk),
    (0x794c_7630, "overlay", Disk),
    (0x7371_7368, "squashfs", Disk),
    (0xe0f5_e1e2, "erofs", Disk),
    (0x0000_4d44, "vfat", Disk),
    (0x2011_bab0, "exfat", Disk),
    (0x7366_746e, "ntfs3", Disk),
    (0x3153_464a, "jfs", Disk),
    (0x5265_4973, "reiserfs", Disk),
    (0x0000_9660, "iso9660", Disk),
    (0x1501_3346, "udf", Disk),
    (0x0000_3434, "nilfs2", Disk),
    (0x0102_1994, "tmpfs", Nothing),
    (0x8584_58f6, "ramfs", Nothing),
    (0x9584_58f6, "hugetlbfs", Nothing),
    (0x0000_9fa0, "proc", Nothing),
    (0x6265_6572, "sysfs", Nothing),
    (0x6462_6720, "debugfs", Nothing),
    (0x7472_6163, "tracefs", Nothing),
    (0x7363_6673, "securityfs", Nothing),
    (0xf97c_ff8c, "selinuxfs", Nothing),
    (0x0027_e0eb, "cgroup", Nothing),
    (0x6367_7270, "cgroup2", Nothing),
    (0xcafe_4a11, "bpf", Nothing),
    (0x0000_1cd1, "devpts", Nothing),
    (0x5049_5045, "pipefs", Nothing),
    (0x534f_434b, "sockfs", Nothing),
    (0x1980_0202, "mqueue", Nothing),
    (0x6e73_6673, "nsfs", Nothing),
    (0x5049_4446, "pidfs", Nothing),
    (0x0904_1934, "anon_inodefs", Nothing),
    (0x6573_5543, "fusectl", Nothing),
    (0x6573_5546, "fuse", Program),
    (0x0000_0187, "autofs", Program),
    (0x0000_6969, "nfs", Host),
    (0xff53_4d42, "cifs", Host),
    (0xfe53_4d42, "smb3", Host),
    (0x0000_517b, "smbfs", Host),
    (0x00c3_6400, "ceph", Host),
    (0x0102_1997, "9p", Host),
    (0x5346_414f, "afs", Host),
    (0x6b41_4653, "afs", Host),
    (0x7375_7245, "coda", Host),
    (0x2003_0528, "orangefs", Host),
    (0x0bd0_0bd0, "lustre", Host),
    (0x0116_1970, "gfs2", Host),
    (0x7461_636f, "ocfs2", Host),
    (0x786f_4256, "vboxsf", Host),
];

/// Beginnings of functions of file systems that somebody else serves.
const ELSEWHERE: &[(&str, &str, Holds)] = &[
    ("request_wait_answer", "fuse", Program),
    ("fuse_", "fuse", Program),
    ("__fuse_", "fuse", Program),
    ("autofs_", "autofs", Program),
    ("nfs_", "nfs", Host),
    ("nfs3_", "nfs", Host),
    ("nfs4_", "nfs", Host),
    ("_nfs4_", "nfs", Host),
    ("nlmclnt_", "nfs", Host),
    ("rpc_wait_bit_killable", "nfs", Host),
    ("rpc_call_sync", "nfs", Host),
    ("cifs_", "cifs", Host),
    ("smb2_", "cifs", Host),
    ("SMB2_", "cifs", Host),
    ("compound_send_recv", "cifs", Host),
    ("ceph_", "ceph", Host),
    ("p9_client_", "9p", Host),
    ("v9fs_", "9p", Host),
    ("afs_", "afs", Host),
];

/// Beginnings of functions in which the file systems of disks wait for their own threads that write: the kernel does not
/// count all of those waits as I/O.
const ON_DISK: &[&str] = &[
    "jbd2_",
    "start_this_handle",
    "wait_transaction_",
    "ext4_",
    "xfs_",
    "xlog_",
    "btrfs_",
    "wait_current_trans",
    "f2fs_",
    "bch2_",
    "zil_",
    "txg_",
    "blkdev_",
    "submit_bio_wait",
    "blk_",
    "wb_wait_for_completion",
    "balance_dirty_pages",
    "folio_wait_writeback",
    "__filemap_fdatawait_range",
    "sync_inodes_sb",
];

/// The file system with a magic number; none = none that is known.
pub fn of_magic(magic: u32) -> Option<FileSystem> {
    MAGIC.iter().find(|row| row.0 == magic).map(|&(_, name, holds)| FileSystem { name, holds })
}

/// The file system that somebody else serves, if a function of one is on a stack.
pub fn elsewhere(stack: &[&str]) -> Option<FileSystem> {
    // The program that serves one waits for the next request to it.
    if stack.iter().any(|name| name.starts_with("fuse_dev_")) {
        return None;
    }
    let of = |name: &&str| ELSEWHERE.iter().find(|(part, ..)| name.starts_with(part));
    stack.iter().find_map(of).map(|&(_, name, holds)| FileSystem { name, holds })
}

/// Whether a function of a disk's file system is on a stack.
pub fn is_on_disk(stack: &[&str]) -> bool {
    stack.iter().any(|name| ON_DISK.iter().any(|part| name.starts_with(part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_number() {
        let of = |magic| of_magic(magic).map(|fs| (fs.name, fs.holds));
        assert_eq!(of(0xef53), Some(("ext4", Disk)));
        assert_eq!(of(0x6573_5546), Some(("fuse", Program)));
        assert_eq!(of(0x6969), Some(("nfs", Host)));
        assert_eq!((of(0x0102_1994), of(1)), (Some(("tmpfs", Nothing)), None));
    }

    #[test]
    fn each_number_once() {
        for (i, row) in MAGIC.iter().enumerate() {
            assert!(MAGIC[..i].iter().all(|other| other.0 != row.0), "{}", row.1);
        }
    }

    #[test]
    fn by_functions() {
        let name = |stack: &[&str]| elsewhere(stack).map(|fs| fs.name);
        assert_eq!(name(&["request_wait_answer", "__fuse_simple_request", "fuse_direct_io"]), Some("fuse"));
        assert_eq!(name(&["rpc_wait_bit_killable", "__rpc_execute", "nfs4_call_sync_sequence"]), Some("nfs"));
        assert_eq!(name(&["fuse_dev_do_read", "fuse_dev_read", "vfs_read"]), None);
        assert_eq!(name(&["jbd2_log_wait_commit", "ext4_fsync_journal"]), None);
        assert!(is_on_disk(&["jbd2_log_wait_commit", "ext4_fsync_journal"]) && !is_on_disk(&["vm_mmap_pgoff"]));
    }
}
