// SPDX-License-Identifier: Apache-2.0
//! Kinds of blocks, with stacks as kernels show them.

use super::*;

const EXT4: u32 = 0xef53;
const TMPFS: u32 = 0x0102_1994;
const FUSE: u32 = 0x6573_5546;
const NFS: u32 = 0x6969;

fn on(file_system: u32, syscall: &str, fd_kind: &str, state: u32, io_wait: bool, stack: &[&str]) -> Blocked {
    kind(&Evidence { syscall, fd_kind, file_system, state, io_wait, stack })
}

fn check(syscall: &str, fd_kind: &str, state: u32, io_wait: bool, stack: &[&str], expected: Blocked) {
    assert_eq!(on(0, syscall, fd_kind, state, io_wait, stack), expected, "{syscall} on {fd_kind}");
}

#[test]
fn calls_and_files() {
    check("read", "socket", 1, false, &[], Blocked::SocketRead);
    check("read", "pipe", 1, false, &[], Blocked::Pipe);
    check("read", "", 1, false, &["anon_pipe_read", "vfs_read"], Blocked::Pipe);
    check("read", "tty", 1, false, &[], Blocked::Tty);
    check("read", "anon", 1, false, &[], Blocked::Other);
    check("read", "", 2, true, &["folio_wait_bit_common"], Blocked::Disk);
    check("pread64", "file", 2, true, &[], Blocked::Disk);
    check("write", "socket", 1, false, &["sk_stream_wait_memory"], Blocked::SocketSend);
    check("sendmsg", "", 1, false, &[], Blocked::SocketSend);
    check("accept4", "", 1, false, &[], Blocked::Accept);
    check("epoll_pwait2", "anon", 1, false, &[], Blocked::Poll);
    check("futex", "", 1, false, &[], Blocked::Futex);
    check("clock_nanosleep", "", 1, false, &[], Blocked::Sleep);
    check("wait4", "", 1, false, &[], Blocked::Child);
    check("fsync", "file", 2, true, &[], Blocked::Disk);
    check("rt_sigsuspend", "", 1, false, &[], Blocked::Other);
    check("syscall 9999", "", 0, false, &[], Blocked::Other);
}

#[test]
fn faults_inside_and_outside_calls() {
    check("none", "", 2, true, &[], Blocked::PageFault);
    check("none", "", 1, false, &[], Blocked::Other);
    let stack = ["io_schedule", "filemap_fault", "handle_mm_fault", "exc_page_fault", "copy_to_user", "vfs_read"];
    check("read", "socket", 2, true, &stack, Blocked::PageFault);
    check("epoll_wait", "anon", 1, false, &stack, Blocked::PageFault);
}

/// As seen on Linux 6.18, from the moment of leaving the CPU and of one that sleeps already, and on 6.1.
#[test]
fn locks_of_the_kernel() {
    let leaving =
        ["__schedule", "schedule", "schedule_preempt_disabled", "rwsem_down_write_slowpath", "down_write_killable"];
    let at = |below: &[&'static str]| [&leaving[..], below].concat();
    check("mmap", "", 2, false, &at(&["vm_mmap_pgoff", "do_syscall_64"]), Blocked::KernelLock);
    check("mmap", "", 2, false, &["vm_mmap_pgoff", "do_syscall_64"], Blocked::KernelLock);
    check("munmap", "", 2, false, &["__vm_munmap", "__x64_sys_munmap"], Blocked::KernelLock);
    let fault =
        ["schedule", "rwsem_down_read_slowpath", "down_read_killable", "lock_mm_and_find_vma", "do_user_addr_fault"];
    check("none", "", 2, false, &fault, Blocked::KernelLock);
    check("read", "socket", 2, false, &fault, Blocked::KernelLock);
    check("none", "", 2, false, &["do_user_addr_fault", "exc_page_fault"], Blocked::KernelLock);
    let mutex =
        ["__schedule", "schedule", "schedule_preempt_disabled", "__mutex_lock.constprop.0", "fdget_pos", "ksys_read"];
    assert_eq!(on(EXT4, "read", "file", 2, false, &mutex), Blocked::KernelLock);
    let inode = at(&["ext4_buffered_write_iter", "vfs_write"]);
    assert_eq!(on(EXT4, "write", "file", 2, false, &inode), Blocked::KernelLock);
    // A thread that sleeps for I/O, or interruptibly for something else, waits for no such lock.
    check("none", "", 2, true, &["folio_wait_bit_common", "filemap_fault", "exc_page_fault"], Blocked::PageFault);
    check("mmap", "", 2, true, &at(&["vm_mmap_pgoff"]), Blocked::Disk);
}

#[test]
fn disks_and_the_threads_that_write_for_them() {
    let journal = ["__schedule", "schedule", "jbd2_log_wait_commit", "ext4_fsync_journal", "ext4_sync_file"];
    assert_eq!(on(EXT4, "fsync", "file", 2, false, &journal), Blocked::Disk);
    check("rename", "", 2, false, &["wait_transaction_locked", "start_this_handle"], Blocked::Disk);
    assert_eq!(on(EXT4, "read", "file", 2, true, &["folio_wait_bit_common"]), Blocked::Disk);
    // Nothing on a disk: files that the kernel makes up or keeps in memory.
    assert_eq!(on(TMPFS, "read", "file", 2, false, &["shmem_file_read_iter"]), Blocked::Other);
    assert_eq!(on(0x9fa0, "read", "file", 1, false, &["kmsg_read"]), Blocked::Other);
    // Uninterruptible for something that is neither lock nor disk.
    check("membarrier", "", 2, false, &["__schedule", "schedule", "synchronize_rcu_normal"], Blocked::Other);
}

#[test]
fn file_systems_that_somebody_else_serves() {
    assert_eq!(on(FUSE, "pread64", "file", 1, false, &["request_wait_answer", "fuse_direct_io"]), Blocked::FileSystem);
    assert_eq!(on(FUSE, "pread64", "file", 2, true, &["folio_wait_bit_common", "filemap_read"]), Blocked::FileSystem);
    assert_eq!(on(NFS, "read", "file", 2, true, &["folio_wait_bit_common"]), Blocked::FileSystem);
    check(
        "openat",
        "",
        2,
        false,
        &["__schedule", "schedule", "rpc_wait_bit_killable", "nfs4_do_open"],
        Blocked::FileSystem,
    );
    check("stat", "", 1, false, &["request_wait_answer", "fuse_do_getattr"], Blocked::FileSystem);
    check("none", "", 2, false, &["request_wait_answer", "fuse_readahead", "exc_page_fault"], Blocked::FileSystem);
    assert_eq!(on(EXT4, "pread64", "file", 2, true, &["folio_wait_bit_common"]), Blocked::Disk);
}

#[test]
fn locks_on_files_and_semaphores() {
    check("flock", "file", 1, false, &["locks_lock_inode_wait", "__do_sys_flock"], Blocked::FileLock);
    check("flock", "", 1, false, &[], Blocked::FileLock);
    check("fcntl", "file", 1, false, &["fcntl_setlk", "do_fcntl"], Blocked::FileLock);
    check("openat", "", 1, false, &["__break_lease", "do_dentry_open"], Blocked::FileLock);
    check("semtimedop", "", 1, false, &["__do_semtimedop"], Blocked::Semaphore);
    check("read", "anon", 1, false, &["eventfd_read", "vfs_read"], Blocked::Semaphore);
    check(
        "fcntl",
        "pipe",
        2,
        false,
        &["__schedule", "schedule", "__mutex_lock.constprop.0", "pipe_fcntl"],
        Blocked::KernelLock,
    );
}

#[test]
fn held_whatever_it_waited_for() {
    check("epoll_wait", "anon", 4, false, &["do_signal_stop", "get_signal"], Blocked::Stopped);
    check("read", "socket", 8, false, &["ptrace_stop"], Blocked::Stopped);
    check("futex", "", 16, false, &["get_signal"], Blocked::Stopped);
    check("none", "", 16, false, &[], Blocked::Stopped);
}

#[test]
fn memory_has_to_be_freed_first() {
    let throttled = ["schedule_timeout", "__mem_cgroup_handle_over_high", "exit_to_user_mode_loop"];
    assert_eq!(on(EXT4, "read", "file", 2, false, &throttled), Blocked::Memory);
    check("none", "", 2, true, &["shrink_node", "try_to_free_mem_cgroup_pages", "exc_page_fault"], Blocked::Memory);
}
