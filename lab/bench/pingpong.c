/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two processes that send one byte to and fro over the loopback, for ever. In a file that is mapped the one that
 * answers says how many round trips there were and what CPU time it took, by getrusage.
 *
 * pingpong FILE
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <signal.h>
#include <unistd.h>

struct page {
	uint64_t trips;
	uint64_t cpu_ns;
};

static uint64_t used_ns(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return (uint64_t)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000000ULL +
	       (uint64_t)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1000ULL;
}

static void serve(int ball, struct page *page)
{
	char byte;

	while (read(ball, &byte, 1) == 1 && write(ball, &byte, 1) == 1) {
		if (page->trips % 64 == 0)
			page->cpu_ns = used_ns();
		__atomic_add_fetch(&page->trips, 1, __ATOMIC_RELEASE);
	}
}

static void play(int ball)
{
	char byte = 0;

	while (write(ball, &byte, 1) == 1 && read(ball, &byte, 1) == 1)
		;
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int file = argc == 2 ? open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0644) : -1;
	int one = 1, ball, listener = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t size = sizeof(at);
	struct page *page;

	if (file < 0 || ftruncate(file, 4096)) {
		fprintf(stderr, "usage: pingpong FILE (a file that can be written)\n");
		return 2;
	}
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (page == MAP_FAILED || bind(listener, (void *)&at, sizeof(at)) || listen(listener, 1))
		return 2;
	getsockname(listener, (void *)&at, &size);
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		ball = socket(AF_INET, SOCK_STREAM, 0);
		setsockopt(ball, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		if (!connect(ball, (void *)&at, sizeof(at)))
			play(ball);
		_exit(1);
	}
	ball = accept(listener, NULL, NULL);
	setsockopt(ball, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	serve(ball, page);
	return 1;
}
