/* SPDX-License-Identifier: Apache-2.0 */
/* What the generators of chains and of requests share: a drawn script, its clock, processes that are nobody's children.
 */
#ifndef SCRIPT_H
#define SCRIPT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t state;

static unsigned draw(unsigned below)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned)(state >> 33) % below;
}

/* What follows is drawn from this seed. */
static void draw_from(const char *seed)
{
	state = strtoull(seed, NULL, 10) * 2654435761u + 1;
	for (int i = 0; i < 8; i++) /* neighbouring seeds begin alike */
		draw(2);
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void spin(uint64_t us)
{
	uint64_t until = now_ns() + us * 1000;

	while (now_ns() < until)
		;
}

static void rest(uint64_t us)
{
	struct timespec left = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

	while (nanosleep(&left, &left))
		;
}

static void *shared(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		die("mmap");
	return memory;
}

/*
 * Starts a process that is nobody's child, as the first one's children would belong to its target. They end with the
 * group that the lab keeps them in.
 */
static pid_t start(const char *name, pid_t *pid)
{
	pid_t child = fork();

	if (child < 0)
		die("fork");
	if (child) {
		waitpid(child, NULL, 0);
		return *pid;
	}
	if ((child = fork())) {
		*pid = child;
		_exit(child < 0);
	}
	prctl(PR_SET_NAME, name);
	return 0;
}

#endif
