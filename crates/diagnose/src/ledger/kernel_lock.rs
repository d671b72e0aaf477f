// SPDX-License-Identifier: Apache-2.0
//! Locks of the kernel: told by the functions in which a thread waits for one, and by the function that wanted it.
//!
//! The kernel leaves the first kind out of the stack of a thread that sleeps already. Those who want nothing else than the
//! lock of the memory map can be told without them; for the others a stack from the moment of leaving the CPU is needed.

/// What a lock guards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Guards {
    /// The memory map of a process: one lock (`mmap_lock`), or one for each of its areas.
    MemoryMap,
    /// A file or folder: the lock of an inode.
    Inode,
    /// The position of an open file.
    Position,
    /// A pipe.
    Pipe,
    /// A socket.
    Socket,
    /// Something else.
    Other,
}

impl Guards {
    /// For people, as in "a lock of ...".
    pub fn words(self) -> &'static str {
        match self {
            Self::MemoryMap => "the process's memory map (mmap_lock)",
            Self::Inode => "a file or folder (inode)",
            Self::Position => "the position of an open file",
            Self::Pipe => "a pipe",
            Self::Socket => "a socket",
            Self::Other => "the kernel",
        }
    }
}

/// A lock of the kernel that a thread stood before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelLock<'a> {
    /// What it guards.
    pub guards: Guards,
    /// Kind of lock: `rwsem`, `mutex`; empty = unknown.
    pub kind: &'static str,
    /// The function that wanted it; empty = unknown.
    pub taken_in: &'a str,
}

/// Functions in which a thread waits for a lock, and what kind of lock that is.
const LOCKS: &[(&str, &str)] = &[
    ("rwsem_down_read_slowpath", "rwsem"),
    ("rwsem_down_write_slowpath", "rwsem"),
    ("__down_read_common", "rwsem"),
    ("__down_write_common", "rwsem"),
    ("__down_read", "rwsem"),
    ("__down_write", "rwsem"),
    ("down_read", "rwsem"),
    ("down_read_interruptible", "rwsem"),
    ("down_read_killable", "rwsem"),
    ("down_write", "rwsem"),
    ("down_write_killable", "rwsem"),
    ("down_write_nested", "rwsem"),
    ("percpu_rwsem_wait", "percpu-rwsem"),
    ("__percpu_down_read", "percpu-rwsem"),
    ("percpu_down_write", "percpu-rwsem"),
    ("rwbase_read_lock", "rt-rwsem"),
    ("rwbase_write_lock", "rt-rwsem"),
    ("__mutex_lock", "mutex"),
    ("__mutex_lock_common", "mutex"),
    ("__mutex_lock_slowpath", "mutex"),
    ("__mutex_lock_killable_slowpath", "mutex"),
    ("__mutex_lock_interruptible_slowpath", "mutex"),
    ("mutex_lock", "mutex"),
    ("mutex_lock_io", "mutex"),
    ("mutex_lock_killable", "mutex"),
    ("mutex_lock_interruptible", "mutex"),
    ("mutex_lock_nested", "mutex"),
    ("__ww_mutex_lock", "mutex"),
    ("ww_mutex_lock", "mutex"),
    ("__ww_mutex_lock_slowpath", "mutex"),
    ("__down", "semaphore"),
    ("__down_common", "semaphore"),
    ("__down_killable", "semaphore"),
    ("__down_interruptible", "semaphore"),
    ("__down_timeout", "semaphore"),
    ("down", "semaphore"),
    ("down_killable", "semaphore"),
    ("down_interruptible", "semaphore"),
    ("down_timeout", "semaphore"),
    ("rt_mutex_slowlock", "rt-mutex"),
    ("__rt_mutex_slowlock", "rt-mutex"),
    ("__rt_mutex_slowlock_locked", "rt-mutex"),
    ("rtlock_slowlock", "rt-mutex"),
    ("rtlock_slowlock_locked", "rt-mutex"),
    ("rt_spin_lock", "rt-mutex"),
    ("__lock_sock", "socket lock"),
    ("lock_sock_nested", "socket lock"),
    ("__vma_start_write", "area lock"),
    ("__vma_enter_locked", "area lock"),
    ("vma_start_write", "area lock"),
];

/// Functions that only pass on to one of [`LOCKS`]; the one before them wanted it.
const WRAPPERS: &[&str] = &[
    "lock_mm_and_find_vma",
    "get_mmap_lock_carefully",
    "mmap_read_lock",
    "mmap_read_lock_killable",
    "mmap_write_lock",
    "mmap_write_lock_killable",
    "mm_access",
    "inode_lock",
    "inode_lock_shared",
];

/// Functions that want the lock of the memory map and sleep for nothing else themselves: what else they wait for is in
/// functions that they call.
const OF_MEMORY_MAP: &[&str] = &[
    "vm_mmap_pgoff",
    "ksys_mmap_pgoff",
    "vm_munmap",
    "__vm_munmap",
    "vm_brk_flags",
    "__do_sys_brk",
    "__x64_sys_brk",
    "__arm64_sys_brk",
    "__do_sys_mremap",
    "__x64_sys_mremap",
    "__arm64_sys_mremap",
    "do_mremap",
    "do_mprotect_pkey",
    "do_madvise",
    "madvise_lock",
    "do_mlock",
    "__do_sys_mlockall",
    "__do_sys_munlockall",
    "__mm_populate",
    "__do_sys_mincore",
    "__do_sys_msync",
    "lock_mm_and_find_vma",
    "do_user_addr_fault",
    "exc_page_fault",
    "asm_exc_page_fault",
    "do_page_fault",
    "do_mem_abort",
    "dup_mm",
    "dup_mmap",
    "exit_mm",
    "exit_mmap",
    "exec_mmap",
    "__get_user_pages_unlocked",
    "get_user_pages_unlocked",
    "__gup_longterm_locked",
    "fixup_user_fault",
    "__access_remote_vm",
    "access_remote_vm",
    "task_numa_work",
    "do_mbind",
    "m_start",
    "smap_gather_stats",
    "pagemap_read",
    "show_smaps_rollup",
    "ksys_shmdt",
    "do_shmat",
];

/// Beginnings of functions that want the lock of a file or folder.
const OF_INODES: &[&str] = &[
    "path_openat",
    "open_last_lookups",
    "lookup_slow",
    "__lookup_slow",
    "walk_component",
    "do_unlinkat",
    "do_rmdir",
    "filename_create",
    "lock_rename",
    "do_renameat",
    "iterate_dir",
    "vfs_setxattr",
    "chmod_common",
    "chown_common",
    "do_truncate",
    "notify_change",
];

/// Functions in which any thread gives its CPU away, whatever for.
const SCHEDULING: &[&str] =
    &["__schedule", "schedule", "schedule_preempt_disabled", "schedule_timeout", "io_schedule", "preempt_schedule"];

/// The lock that a stack, leaf first, waits for; none = it waits for something else.
pub fn of<'a>(stack: &[&'a str]) -> Option<KernelLock<'a>> {
    let stack: Vec<&'a str> = stack.iter().map(|name| plain(name)).collect();
    let below: Vec<&'a str> = stack.iter().copied().skip_while(|name| SCHEDULING.contains(name)).collect();
    let seen = stack.len() > below.len();
    let kind = below.iter().take(3).find_map(|name| LOCKS.iter().find(|(lock, _)| lock == name)).map(|(_, kind)| *kind);
    let wanted = |name: &&&str| !LOCKS.iter().any(|(lock, _)| *lock == **name) && !WRAPPERS.contains(*name);
    let taken_in = below.iter().find(wanted).copied().unwrap_or_default();
    match kind {
        Some(kind) => Some(KernelLock { guards: guards(kind, taken_in, &below), kind, taken_in }),
        // Of one that sleeps already, the leaf is the function that waits, or that called one of `LOCKS`.
        None if !seen && below.first().is_some_and(|leaf| OF_MEMORY_MAP.contains(leaf)) => {
            Some(KernelLock { guards: Guards::MemoryMap, kind: "", taken_in })
        }
        None => None,
    }
}

fn guards(kind: &str, taken_in: &str, stack: &[&str]) -> Guards {
    let begins = |list: &[&str]| list.iter().any(|part| taken_in.starts_with(part));
    let wrapped = stack.iter().take(4).any(|name| name.contains("mmap_") && WRAPPERS.contains(name));
    match kind {
        "socket lock" => Guards::Socket,
        "area lock" => Guards::MemoryMap,
        _ if wrapped || OF_MEMORY_MAP.contains(&taken_in) => Guards::MemoryMap,
        _ if taken_in.contains("fdget_pos") || taken_in.starts_with("ksys_") => Guards::Position,
        _ if taken_in.starts_with("pipe_") || taken_in.starts_with("anon_pipe_") => Guards::Pipe,
        _ if begins(OF_INODES) || taken_in.ends_with("_write_iter") || taken_in.ends_with("_read_iter") => {
            Guards::Inode
        }
        _ => Guards::Other,
    }
}

/// A name without what the compiler adds to its copies: `__mutex_lock.constprop.0`.
fn plain(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(stack: &[&str]) -> Option<(Guards, String)> {
        of(stack).map(|lock| (lock.guards, format!("{} in {}", lock.kind, lock.taken_in)))
    }

    /// What stands above the functions that take a lock, when its thread leaves the CPU.
    fn below(functions: &[&'static str]) -> Option<(Guards, String)> {
        told(&[&["__schedule", "schedule", "schedule_preempt_disabled"], functions].concat())
    }

    #[test]
    fn what_a_lock_guards() {
        let map =
            below(&["rwsem_down_read_slowpath", "down_read_killable", "lock_mm_and_find_vma", "do_user_addr_fault"]);
        assert_eq!(map, Some((Guards::MemoryMap, "rwsem in do_user_addr_fault".into())));
        let inode = below(&["rwsem_down_write_slowpath", "down_write", "ext4_buffered_write_iter", "vfs_write"]);
        assert_eq!(inode, Some((Guards::Inode, "rwsem in ext4_buffered_write_iter".into())));
        let position = below(&["__mutex_lock.constprop.0", "fdget_pos", "ksys_write"]);
        assert_eq!(position, Some((Guards::Position, "mutex in fdget_pos".into())));
        assert_eq!(below(&["__lock_sock", "lock_sock_nested", "tcp_recvmsg"]).unwrap().0, Guards::Socket);
        assert_eq!(below(&["__mutex_lock.constprop.0", "rtnl_lock"]).unwrap().0, Guards::Other);
    }

    #[test]
    fn one_that_sleeps_already_shows_only_who_wanted_it() {
        assert_eq!(told(&["vm_mmap_pgoff", "do_syscall_64"]), Some((Guards::MemoryMap, " in vm_mmap_pgoff".into())));
        assert_eq!(told(&["jbd2_log_wait_commit", "ext4_sync_file"]), None);
        // The same function on the way, or in a wait of its own, says nothing.
        assert_eq!(told(&["folio_wait_bit_common", "filemap_fault", "exc_page_fault"]), None);
        assert_eq!(below(&["vm_mmap_pgoff"]), None);
    }
}
