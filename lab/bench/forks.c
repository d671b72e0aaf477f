// SPDX-License-Identifier: Apache-2.0
/*
 * Forks children that end at once, so many a second, and waits for them. In a file that is mapped it
 * says how many there were and what CPU time it and they took, by getrusage.
 *
 * forks RATE FILE
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct page {
	uint64_t forks;
	uint64_t cpu_ns;
};

static uint64_t used_ns(int who)
{
	struct rusage r;

	getrusage(who, &r);
	return (uint64_t)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000000ULL +
	       (uint64_t)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1000ULL;
}

int main(int argc, char **argv)
{
	int file = argc == 3 ? open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0644) : -1;
	long rate = argc == 3 ? atol(argv[1]) : 0;
	struct timespec next;
	struct page *page;

	if (file < 0 || rate <= 0 || ftruncate(file, 4096)) {
		fprintf(stderr, "usage: forks RATE FILE (a file that can be written)\n");
		return 2;
	}
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (page == MAP_FAILED)
		return 2;
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (;;) {
		pid_t child = fork();

		if (child == 0)
			_exit(0);
		if (child < 0 || waitpid(child, NULL, 0) != child)
			return 1;
		page->cpu_ns = used_ns(RUSAGE_SELF) + used_ns(RUSAGE_CHILDREN);
		__atomic_add_fetch(&page->forks, 1, __ATOMIC_RELEASE);
		next.tv_nsec += 1000000000 / rate;
		if (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
}
