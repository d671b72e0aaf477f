/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * The file that a sleeper waits for: that of its call, of an epoll the one whose event ends the wait, of a poll of one
 * file that one.
 */
#pragma once

/*
 * The file whose event wakes a sleeper in epoll: the last of those that are ready, because it is added to the list just
 * before. NULL = the wait ends by something else.
 */
static __always_inline struct file *ready_file(struct file *epoll)
{
	struct eventpoll *ep = BPF_CORE_READ(epoll, private_data);
	void *list = (void *)ep + bpf_core_field_offset(struct eventpoll, rdllist);
	void *last = BPF_CORE_READ(ep, rdllist.prev);
	struct epitem *item = last - bpf_core_field_offset(struct epitem, rdllink);

	return last && last != list ? BPF_CORE_READ(item, ffd.file) : NULL;
}

/* The file that a sleeper waits for; NULL = none, or it cannot be told. */
static __always_inline struct file *awaited_file(struct task_struct *task, s32 syscall, struct pt_regs *regs)
{
	struct thread_state *t;

	switch (subject_of(syscall)) {
	case ONE_FILE:
		return file_of(task, regs->di);
	case EPOLL_SET:
		return ready_file(file_of(task, regs->di));
	case POLL_SET:
		t = bpf_task_storage_get(&threads, task, 0, 0);
		return t && t->polled >= 0 ? file_of(task, t->polled) : NULL;
	}
	return NULL;
}

/* Tells a file's kind, and the ports if it is a socket. */
static __always_inline u8 look_at(struct file *file, struct port_pair *ports)
{
	u8 kind = kind_at((u64)file);

	__builtin_memset(ports, 0, sizeof(*ports));
	if (kind == FD_SOCKET)
		ports_of(file, ports);
	return kind;
}
