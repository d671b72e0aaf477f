// SPDX-License-Identifier: Apache-2.0
// Eight threads that work for a millisecond and sleep for four, as those of a service do: most sleep when the quota of
// their group is used up, and are woken while it holds them.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define THREADS 8

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void *work(void *number)
{
	volatile uint64_t sum = 0;
	struct timespec nap = {.tv_nsec = 4000000};
	char name[16];

	snprintf(name, sizeof(name), "worker-%d", (int)(intptr_t)number);
	pthread_setname_np(pthread_self(), name);
	for (;;) {
		uint64_t end = cpu_ns() + 1000000;

		while (cpu_ns() < end)
			for (int i = 0; i < 1000; i++)
				sum += i * sum;
		nanosleep(&nap, NULL);
	}
	return NULL;
}

int main(void)
{
	pthread_t thread;

	for (intptr_t i = 1; i <= THREADS; i++)
		if (pthread_create(&thread, NULL, work, (void *)i))
			return 1;
	for (;;)
		pause();
}
