/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * What a thread that sleeps is in, as its registers and the task tell it: the system call, and the kind of file that
 * its first argument refers to.
 */
#pragma once

#include "bitness.bpf.h"

#define CALLS 512
#define STATE_MASK 0x0f /* R, S, D, T, t; without the freezable, killable and load bits */
#define TASK_INTERRUPTIBLE 0x01
#define TASK_UNINTERRUPTIBLE 0x02
#define TASK_RTLOCK_WAIT 0x1000 /* uninterruptible, on a real-time kernel */
#define TASK_FROZEN 0x8000 /* since 6.1, by a cgroup (v1) or before the host sleeps */
#define STATE_FROZEN 0x10 /* ours: the kernel has several ways to say it */
#define ANON_INODE_MAGIC 0x09041934

/* Which file a call is about. */
enum subject {
	NO_FILE,
	ONE_FILE, /* that of its first argument */
	EPOLL_SET, /* the one that is ready, of those that its first argument watches */
	POLL_SET, /* that of the array at its first argument, if there is one only */
};

/* By the call's number, enum subject; set by user space. */
const volatile u8 subjects[CALLS];

enum fd_kind { FD_NONE, FD_SOCKET, FD_PIPE, FD_TTY, FD_FILE, FD_BLOCK, FD_ANON };

/* Number of the system call that a thread is in; -1 = none, or one of 32-bit code. */
static __always_inline s32 call_number(const struct pt_regs *regs)
{
	s32 nr = (s32)regs->orig_ax;

	if (is_32_bit(regs))
		return -1;
	return nr < 0 || nr >= CALLS ? -1 : nr;
}

/* The file behind a descriptor; NULL = there is none. */
static __always_inline struct file *file_of(struct task_struct *task, u64 fd)
{
	struct fdtable *table = untrusted(task)->files->fdt;
	struct file *file = NULL;

	if (fd < table->max_fds)
		bpf_probe_read_kernel(&file, sizeof(file), table->fd + fd);
	return file;
}

static __always_inline u8 subject_of(s32 syscall)
{
	return syscall >= 0 && syscall < CALLS ? subjects[syscall] : NO_FILE;
}

/*
 * What a task that does not run is in: the bits of STATE_MASK, and whether a freezer holds it. A frozen cgroup (v2)
 * leaves its tasks in an interruptible sleep and notes that they are frozen; those that are stopped or traced it notes
 * as well.
 */
static __always_inline u8 state_of(struct task_struct *task, u32 state)
{
	if (state & TASK_FROZEN)
		return STATE_FROZEN;
	if (state & TASK_RTLOCK_WAIT)
		return TASK_UNINTERRUPTIBLE;
	state &= STATE_MASK;
	if (state == TASK_INTERRUPTIBLE && bpf_core_field_exists(struct task_struct, frozen) &&
	    BPF_CORE_READ_BITFIELD(task, frozen))
		return STATE_FROZEN;
	return state;
}

/* The magic number of the file system that a file is on, as in statfs(2); 0 = none. */
static __always_inline u32 file_system_of(struct file *file)
{
	return file ? (u32)BPF_CORE_READ(file, f_inode, i_sb, s_magic) : 0;
}

static __always_inline u64 inode_of(struct file *file)
{
	return file ? BPF_CORE_READ(file, f_inode, i_ino) : 0;
}

static __always_inline u8 kind_of_file(struct file *file)
{
	struct inode *inode;

	if (!file)
		return FD_NONE;
	inode = BPF_CORE_READ(file, f_inode);
	switch (BPF_CORE_READ(inode, i_mode) & 0170000) {
	case 0140000:
		return FD_SOCKET;
	case 0010000:
		return FD_PIPE;
	case 0020000:
		return FD_TTY;
	case 0060000:
		return FD_BLOCK;
	default:
		return BPF_CORE_READ(inode, i_sb, s_magic) == ANON_INODE_MAGIC ? FD_ANON : FD_FILE;
	}
}

/* The same of a file whose address was read, which is a number: checked once, as a global function. */
__noinline u8 kind_at(u64 file)
{
	return kind_of_file((void *)file);
}
