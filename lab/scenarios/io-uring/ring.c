/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A web service of one thread that receives by io_uring: `ring PORT`. Receives are handed in by one call, and waited
 * for by others that hand in nothing: what those return is 0 whether or not anything has come.
 */
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ENTRIES 512
#define MAX_FD 1024
#define REQUEST 2048
#define ACCEPT MAX_FD

static int ring;
static unsigned *submit_tail, *submit_mask, *submit_index, *done_head, *done_tail, *done_mask;
static struct io_uring_sqe *entries;
static struct io_uring_cqe *done;
static unsigned handed_in;
static char requests[MAX_FD][REQUEST];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void *map(size_t bytes, off_t what)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, what);

	if (at == MAP_FAILED)
		die("mmap");
	return at;
}

static void set_up(void)
{
	struct io_uring_params p = {};
	char *submit, *completed;

	ring = (int)syscall(SYS_io_uring_setup, ENTRIES, &p);
	if (ring < 0)
		die("io_uring_setup");
	submit = map(p.sq_off.array + p.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
	completed = map(p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
	entries = map(p.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
	submit_tail = (unsigned *)(submit + p.sq_off.tail);
	submit_mask = (unsigned *)(submit + p.sq_off.ring_mask);
	submit_index = (unsigned *)(submit + p.sq_off.array);
	done_head = (unsigned *)(completed + p.cq_off.head);
	done_tail = (unsigned *)(completed + p.cq_off.tail);
	done_mask = (unsigned *)(completed + p.cq_off.ring_mask);
	done = (struct io_uring_cqe *)(completed + p.cq_off.cqes);
}

static void enter(unsigned submit, unsigned wait)
{
	if (syscall(SYS_io_uring_enter, ring, submit, wait, wait ? IORING_ENTER_GETEVENTS : 0, NULL, 0) < 0)
		die("io_uring_enter");
}

static void hand_in(int opcode, int fd, void *to, unsigned bytes, uint64_t what)
{
	unsigned tail = *submit_tail, index = tail & *submit_mask;

	entries[index] = (struct io_uring_sqe){
		.opcode = opcode, .fd = fd, .addr = (uintptr_t)to, .len = bytes, .user_data = what};
	submit_index[index] = index;
	__atomic_store_n(submit_tail, tail + 1, __ATOMIC_RELEASE);
	handed_in++;
}

static void receive(int fd)
{
	hand_in(IORING_OP_RECV, fd, requests[fd], REQUEST, (uint64_t)fd);
}

static void answer(int fd, int bytes)
{
	uint64_t sum = 7;
	char text[256];
	int length;

	for (int i = 0; i < 2000; i++)
		sum = sum * 31 + (unsigned char)requests[fd][i % bytes];
	length = snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n%016llx\n",
			  (unsigned long long)sum);
	if (write(fd, text, length) != length)
		close(fd);
	else
		receive(fd);
}

static void complete(int listener, const struct io_uring_cqe *entry)
{
	int one = 1;

	if (entry->user_data != ACCEPT) {
		if (entry->res > 0)
			answer((int)entry->user_data, entry->res);
		else
			close((int)entry->user_data);
		return;
	}
	if (entry->res >= 0 && entry->res < MAX_FD) {
		setsockopt(entry->res, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		receive(entry->res);
	}
	hand_in(IORING_OP_ACCEPT, listener, NULL, 0, ACCEPT);
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);

	if (argc < 2)
		return 2;
	at.sin_port = htons(atoi(argv[1]));
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (void *)&at, sizeof(at)) || listen(listener, 128))
		die("listen");
	set_up();
	hand_in(IORING_OP_ACCEPT, listener, NULL, 0, ACCEPT);
	for (;;) {
		/* A batch of receives at a time; the last ones go in before there is nothing left to wait for. */
		if (handed_in >= 8 || *done_head == __atomic_load_n(done_tail, __ATOMIC_ACQUIRE)) {
			if (handed_in)
				enter(handed_in, 0);
			handed_in = 0;
		}
		enter(0, 1);
		if (*done_head != __atomic_load_n(done_tail, __ATOMIC_ACQUIRE)) {
			struct io_uring_cqe entry = done[*done_head & *done_mask];

			__atomic_store_n(done_head, *done_head + 1, __ATOMIC_RELEASE);
			complete(listener, &entry);
		}
	}
}
