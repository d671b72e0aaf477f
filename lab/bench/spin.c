// SPDX-License-Identifier: Apache-2.0
/*
 * Makes one system call as fast as it can and keeps a diary of how often it did, five milliseconds a
 * line, in a file that is mapped: who reads it costs this program nothing.
 *
 * spin epoll|getppid FILE
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LINES 16384 /* 80 seconds, then the oldest is overwritten */
#define LINE_NS 5000000ULL
#define BATCH 256 /* calls between two looks at the clock */

struct line {
	uint64_t at_ns; /* CLOCK_MONOTONIC; 0 = not written yet */
	uint64_t calls; /* since the start */
};

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static struct line *diary(const char *path)
{
	int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	void *lines;

	if (file < 0 || ftruncate(file, LINES * sizeof(struct line)))
		return NULL;
	lines = mmap(NULL, LINES * sizeof(struct line), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	return lines == MAP_FAILED ? NULL : lines;
}

int main(int argc, char **argv)
{
	struct line *lines = argc == 3 ? diary(argv[2]) : NULL;
	int polls = argc == 3 && !strcmp(argv[1], "epoll"), set = epoll_create1(0);
	struct epoll_event event;
	uint64_t calls = 0, next = 0;

	if (!lines || set < 0) {
		fprintf(stderr, "usage: spin epoll|getppid FILE (a file that can be written)\n");
		return 2;
	}
	for (uint64_t line = 0;;) {
		uint64_t t;

		for (int i = 0; i < BATCH; i++) {
			if (polls)
				epoll_wait(set, &event, 1, 0);
			else
				syscall(SYS_getppid);
		}
		calls += BATCH;
		t = now();
		if (t < next)
			continue;
		next = t + LINE_NS;
		lines[line % LINES].calls = calls;
		__atomic_store_n(&lines[line % LINES].at_ns, t, __ATOMIC_RELEASE);
		line++;
	}
}
