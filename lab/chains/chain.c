/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chain of processes with scripted waits: a client asks the first, each asks the next and waits for its answer, and
 * the last one makes all of them wait. What connects them, who polls before it reads, and what the last one does are
 * drawn from a seed; the truth is printed as JSON before the first round.
 *
 *   chain SEED HOPS SPURIOUS-PERCENT
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "script.h"

#define MOST_HOPS 16

enum kind { TCP, UNIX, PIPE, EVENTFD, FUTEX, KINDS };
static const char *const kind_names[] = {"tcp", "unix", "pipe", "eventfd", "futex"};

/* One way of a link: written at one end, read at the other. */
struct way {
	enum kind kind;
	int from, to;
	uint32_t *word; /* FUTEX: 1 = there is a token */
	int polls; /* the reader waits in epoll before it reads */
	int epoll;
};

struct link {
	struct way ask, answer;
};

/* A connected pair of TCP sockets on the loopback; returns the listener. */
static int tcp_pair(int ends[2])
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(at);
	int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);

	if (listener < 0 || bind(listener, (void *)&at, sizeof(at)) || listen(listener, 1))
		die("listen");
	getsockname(listener, (void *)&at, &size);
	ends[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(ends[0], (void *)&at, sizeof(at)))
		die("connect");
	ends[1] = accept(listener, NULL, NULL);
	for (int i = 0; i < 2; i++)
		setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return listener;
}

static void make_link(struct link *link, enum kind kind)
{
	int ends[2], back[2];

	link->ask.kind = link->answer.kind = kind;
	link->ask.polls = kind != FUTEX && draw(2);
	link->answer.polls = kind != FUTEX && draw(2);
	switch (kind) {
	case TCP:
	case UNIX:
		if (kind == TCP)
			close(tcp_pair(ends));
		else if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
			die("socketpair");
		link->ask.from = link->answer.to = ends[0];
		link->ask.to = link->answer.from = ends[1];
		break;
	case PIPE:
		if (pipe(ends) || pipe(back))
			die("pipe");
		link->ask.from = ends[1], link->ask.to = ends[0];
		link->answer.from = back[1], link->answer.to = back[0];
		break;
	case EVENTFD:
		link->ask.from = link->ask.to = eventfd(0, 0);
		link->answer.from = link->answer.to = eventfd(0, 0);
		break;
	default:
		link->ask.word = shared(4096);
		link->answer.word = link->ask.word + 16;
	}
}

static void give(struct way *way)
{
	uint64_t token = 1;

	if (way->kind == FUTEX) {
		__atomic_store_n(way->word, 1, __ATOMIC_SEQ_CST);
		syscall(SYS_futex, way->word, FUTEX_WAKE, 1, NULL, NULL, 0);
		return;
	}
	while (write(way->from, &token, sizeof(token)) < 0)
		if (errno != EINTR)
			exit(0); /* the other end is gone */
}

static void wait_ready(struct way *way)
{
	struct epoll_event event = {.events = EPOLLIN};

	if (!way->epoll) {
		way->epoll = epoll_create1(0);
		epoll_ctl(way->epoll, EPOLL_CTL_ADD, way->to, &event);
	}
	while (epoll_wait(way->epoll, &event, 1, -1) < 0)
		;
}

static void take(struct way *way)
{
	uint64_t token;
	ssize_t got;

	if (way->kind == FUTEX) {
		while (!__atomic_exchange_n(way->word, 0, __ATOMIC_SEQ_CST))
			syscall(SYS_futex, way->word, FUTEX_WAIT, 0, NULL, NULL, 0);
		return;
	}
	if (way->polls)
		wait_ready(way);
	while ((got = read(way->to, &token, sizeof(token))) < 0)
		if (errno != EINTR)
			exit(0);
	if (!got)
		exit(0);
}

enum root { CPU, SLEEP, TIMEOUT, ROOTS };
static const char *const root_names[] = {"cpu", "timer", "timer"};

/* What the last one does while everybody waits. */
static void be_slow(enum root root, uint64_t us)
{
	if (root == CPU)
		spin(us);
	else if (root == SLEEP)
		rest(us);
	else
		poll(NULL, 0, us / 1000);
}

static void serve(struct link *before, struct link *after, uint64_t own_us, enum root root, uint64_t root_us)
{
	for (;;) {
		take(&before->ask);
		if (after) {
			spin(own_us);
			give(&after->ask);
			take(&after->answer);
		} else {
			be_slow(root, root_us);
		}
		give(&before->answer);
	}
}

/* The first one serves a client, as services do: the listener stays open, so that its port tells. */
static void make_front(struct link *front)
{
	int ends[2];

	tcp_pair(ends);
	front->ask.from = front->answer.to = ends[0];
	front->ask.to = front->answer.from = ends[1];
}

static void be_client(struct link *front)
{
	for (;;) {
		give(&front->ask);
		take(&front->answer);
	}
}

static void ignore(int signal)
{
	(void)signal;
}

/* Interrupts waits that have not ended: about `percent` of them. */
static void disturb(const pid_t *pids, unsigned count, unsigned percent, uint64_t period_us)
{
	for (;;) {
		usleep(period_us / 2 + draw(period_us));
		for (unsigned i = 0; i < count; i++)
			if (draw(100) < percent)
				kill(pids[i], SIGUSR1);
	}
}

int main(int argc, char **argv)
{
	struct sigaction interrupted = {.sa_handler = ignore}; /* no SA_RESTART: calls return EINTR */
	struct link links[MOST_HOPS] = {0}, front = {0};
	pid_t *pids = shared(sizeof(pid_t) * (MOST_HOPS + 3));
	unsigned hops, percent;
	enum root root;
	uint64_t us;

	if (argc != 4 || (hops = atoi(argv[2])) < 1 || hops > MOST_HOPS)
		return 2;
	draw_from(argv[1]);
	percent = atoi(argv[3]);
	root = draw(ROOTS);
	us = 4000 + 1000 * draw(12);
	pids[0] = getpid();
	prctl(PR_SET_NAME, "n0");
	sigaction(SIGUSR1, &interrupted, NULL);
	for (unsigned i = 0; i < hops; i++)
		make_link(&links[i], draw(KINDS));
	for (unsigned i = 1; i <= hops; i++) {
		uint64_t own_us = draw(us / 100 + 1) * 3 / hops + 20;
		char name[8];

		snprintf(name, sizeof(name), "n%u", i);
		if (!start(name, &pids[i]))
			serve(&links[i - 1], i < hops ? &links[i] : NULL, own_us, root, us);
	}
	make_front(&front);
	if (!start("client", &pids[MOST_HOPS + 2]))
		be_client(&front);
	if (percent && !start("disturber", &pids[MOST_HOPS + 1]))
		disturb(pids, hops + 1, percent, us);
	printf("{\"pid\": %d, \"root_pid\": %d, \"root\": \"%s\", \"us\": %llu, \"links\": [", pids[0], pids[hops],
	       root_names[root], (unsigned long long)us);
	for (unsigned i = 0; i < hops; i++)
		printf("%s\"%s\"", i ? ", " : "", kind_names[links[i].ask.kind]);
	printf("]}\n");
	fflush(stdout);
	for (;;) {
		take(&front.ask);
		give(&links[0].ask);
		take(&links[0].answer);
		spin(50);
		give(&front.answer);
	}
}
