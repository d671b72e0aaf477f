// SPDX-License-Identifier: Apache-2.0
/*
 * Many threads, each awake for a moment a second, as in a server with a thread for each client.
 * Prints "ready" when all are there; its wakeups are counted in a file that is mapped.
 *
 * crowd THREADS FILE
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static uint64_t *wakeups;

static void *member(void *seed)
{
	/* Spread over the second, so that they do not all wake at once. */
	struct timespec first = {.tv_nsec = (long)((uintptr_t)seed * 7919 % 1000) * 1000000};
	struct timespec second = {.tv_sec = 1};

	nanosleep(&first, NULL);
	for (;;) {
		nanosleep(&second, NULL);
		__atomic_add_fetch(wakeups, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int file = argc == 3 ? open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0644) : -1;
	long threads = argc == 3 ? atol(argv[1]) : 0;
	pthread_attr_t small;

	if (file < 0 || ftruncate(file, 4096)) {
		fprintf(stderr, "usage: crowd THREADS FILE (a file that can be written)\n");
		return 2;
	}
	wakeups = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (wakeups == MAP_FAILED)
		return 2;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	for (long i = 0; i < threads; i++) {
		pthread_t thread;

		if (pthread_create(&thread, &small, member, (void *)i)) {
			fprintf(stderr, "the host allows %ld threads only\n", i);
			return 1;
		}
	}
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
