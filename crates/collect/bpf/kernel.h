/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * The kernel types that the probes read, and of those only the fields that they read.
 * CO-RE finds the real offsets at load time, so one binary fits all kernels with BTF; a small
 * header of our own keeps the build free of a three-megabyte generated one and of its clashes.
 */
#pragma once

#include <linux/types.h>
#include <stdbool.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __s8 s8;
typedef __s16 s16;
typedef __s32 s32;
typedef __u64 u64;
typedef __s64 s64;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct cfs_rq {
	int throttle_count;
	u64 throttled_clock_pelt_time; /* ns for which it was held so far, without the hold that is still on */
};

struct sched_entity {
	u64 sum_exec_runtime;
	struct cfs_rq *cfs_rq;
};

struct sched_info {
	unsigned long long run_delay;
	unsigned long long last_arrival;
	unsigned long long last_queued;
};

struct super_block {
	unsigned long s_magic;
};

struct inode {
	unsigned short i_mode;
	unsigned long i_ino;
	struct super_block *i_sb;
};

struct file {
	struct inode *f_inode;
	void *private_data;
};

struct list_head {
	struct list_head *next, *prev;
};

struct epoll_filefd {
	struct file *file;
} __attribute__((packed));

struct epitem {
	struct list_head rdllink;
	struct epoll_filefd ffd;
};

struct eventpoll {
	struct list_head rdllist; /* files that are ready, the latest last */
};

struct in6_addr {
	u8 bytes[16];
};

struct bpf_local_storage;

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct net_device {
	possible_net_t nd_net;
};

struct sk_buff {
	struct net_device *dev;
	struct sock *sk; /* that sends it; of one that came mostly NULL */
	u16 protocol; /* of the link, network order */
	u16 network_header; /* from the head on */
	u16 transport_header; /* likewise */
	u32 end; /* likewise: where `struct skb_shared_info` is */
	unsigned char *head;
};

struct skb_shared_info {
	u16 gso_segs; /* into so many segments it is cut later; 0 = it is one */
};

struct sock_common {
	u32 skc_daddr; /* network order */
	struct in6_addr skc_v6_daddr;
	u16 skc_dport; /* network order */
	u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	unsigned long skc_flags; /* a bit for each `enum sock_flags` */
	possible_net_t skc_net;
};

struct wait_queue_head {
	struct list_head head;
};

typedef struct wait_queue_head wait_queue_head_t;

struct wait_queue_entry {
	void *private;
	struct list_head entry;
};

struct socket_wq {
	wait_queue_head_t wait;
};

struct poll_wqueues {
	struct task_struct *polling_task;
	int inline_index; /* how many queues it stands in, up to those that have room in it */
};

struct iov_iter {
	unsigned long iov_offset; /* how far a write has got, if it goes on */
	unsigned long count; /* bytes that are left */
};

struct msghdr {
	struct iov_iter msg_iter;
};

struct socket_lock {
	int owned; /* by a thread, within a call */
};

struct sock {
	struct sock_common __sk_common;
	struct socket_lock sk_lock;
	u16 sk_protocol;
	struct socket_wq *sk_wq;
	struct socket *sk_socket;
	u32 sk_ack_backlog; /* of a listener: how many stand in its accept queue */
	u8 sk_userlocks; /* which buffers the program has sized itself; a bit field in most kernels */
	void *sk_user_data; /* of whoever in the kernel uses the socket besides, as a map of sockets does */
	struct bpf_local_storage *sk_bpf_storage; /* NULL where no program keeps anything about it */
};

struct inet_sock {
	struct sock sk;
	u16 inet_sport; /* network order; stays when the port is given up */
};

struct inet_connection_sock {
	const void *icsk_ulp_ops; /* a layer above TCP, as TLS in the kernel is */
	struct {
		u8 pingpong; /* above zero while what came is answered within a few jiffies */
		u32 lrcvtime; /* jiffies at which data came last */
	} icsk_ack;
};

/* A listener of it has its accept queue in its first subflow. */
struct mptcp_sock {
	struct sock *first;
};

struct minmax_sample {
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u64 bytes_received;
	u64 bytes_sent;
	u32 rcv_nxt;
	u32 rcv_wup; /* rcv_nxt when something was sent last */
	u32 copied_seq; /* up to where the program has read */
	u32 snd_una;
	u32 snd_nxt;
	u32 write_seq; /* up to where the program has written */
	u32 lsndtime; /* jiffies at which data was sent last */
	u64 tcp_mstamp; /* us, when something was sent or came last */
	u64 tcp_clock_cache; /* the same in ns, CLOCK_MONOTONIC */
	u64 tcp_wstamp_ns; /* when pacing lets it send next, likewise */
	u64 delivered_mstamp; /* us, when data that we had sent was acknowledged last */
	u8 nonagle; /* options that overrule Nagle's algorithm; a bit field */
	u32 snd_sml; /* end of the last segment that was sent and not full */
	u32 packets_out; /* segments sent and not acknowledged; of them: */
	u8 chrono_type; /* what keeps it from sending, since `chrono_start`; a bit field in most kernels */
	u32 chrono_start; /* jiffies */
	u32 chrono_stat[3]; /* jiffies in which it had something to send, was held by the peer's window, by its own
			       buffer */
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 snd_cwnd;
	u32 snd_wnd;
	u32 max_window; /* the widest that the peer's window was */
	u32 mss_cache;
	u32 total_retrans;
	u32 data_segs_in;
	u32 data_segs_out;
	u64 bytes_acked;
	u32 snd_ssthresh;
	u32 srtt_us; /* eighths of a us */
	struct minmax rtt_min; /* us */
};

struct socket {
	unsigned long flags;
	struct sock *sk;
};

struct unix_address;

struct unix_sock {
	struct sock sk;
	struct unix_address *addr; /* NULL = it has no name */
	struct sock *peer;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct mm_struct {
	unsigned long start_stack; /* where the first thread's stack begins */
};

struct task_struct {
	unsigned int __state;
	unsigned int flags;
	int on_cpu;
	struct sched_entity se;
	bool throttled; /* since 6.18, where a quota holds single tasks */
	struct sched_info sched_info;
	struct mm_struct *mm;
	unsigned int in_iowait : 1;
	unsigned int frozen : 1; /* by a cgroup (v2), or where that would find it stopped or traced */
	int pid;
	int tgid;
	int exit_code;
	struct task_struct *real_parent;
	char comm[16];
	struct files_struct *files;
	struct bpf_local_storage *bpf_storage; /* NULL where no program keeps anything about the task */
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	u32 fd;
	struct file *file;
};

struct bpf_map;

struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	struct sock *sk;
	void *value;
};

#pragma clang attribute pop

/* The registers of x86-64 lie as user space knows them, in every kernel. */
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8;
	unsigned long ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};

/* The context of a perf_event program, x86-64: the registers of the interrupted code, in whole words. */
enum { REG_CS = 17 };
struct bpf_perf_event_data {
	unsigned long regs[21];
	u64 sample_period;
	u64 addr;
};

/* Map types, flags and states that the headers of user space do not carry. */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1, BPF_F_NO_PREALLOC = 1 };
enum { BPF_LOCAL_STORAGE_GET_F_CREATE = 1, BPF_SK_STORAGE_GET_F_CREATE = 1 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };
enum { TASK_DEAD = 0x80 };
enum { PF_EXITING = 0x00000004, PF_KTHREAD = 0x00200000 };

/*
 * Keeps a struct that goes through a ring in the program's type information, from which the build makes the one that
 * user space reads: there is no second definition of it that could differ.
 */
#define LAYOUT_OF(name) struct name *layout_of_##name __attribute__((unused))
