/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A web service with a thread for each connection, as many are: it books each request in a table that one mutex guards,
 * and answers with the new balance. What it does besides, or instead, is the scenario's:
 *
 *   threaded PORT plain            nothing
 *   threaded PORT locked US        it waits so long for the auditor while it holds the mutex
 *   threaded PORT unlocked US      it waits so long before it takes the mutex
 *   threaded PORT journal FILE BYTES    each booking is written, in records of this length, and synced
 *   threaded PORT log FILE BYTES   each request is logged, in lines of this length
 *   threaded PORT index FILE MEGABYTES    instead: it looks at pages all over an index, which it maps into memory
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ACCOUNTS 4096
#define PAGE 4096
#define LOOKUPS 16

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t balances[ACCOUNTS];
static const char *mode;
static long wait_us, line_bytes;
static int file = -1;
static const uint8_t *pages;
static size_t page_count;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void ask_auditor(void)
{
	struct timespec wait = {.tv_nsec = wait_us * 1000};

	nanosleep(&wait, NULL);
}

/* Books one unit, and some work: a checksum over the table. */
static uint64_t book(unsigned account)
{
	uint64_t sum = 0;

	if (!strcmp(mode, "unlocked"))
		ask_auditor();
	pthread_mutex_lock(&mutex);
	balances[account % ACCOUNTS]++;
	for (unsigned i = 0; i < ACCOUNTS; i++)
		sum = sum * 31 + balances[i];
	if (!strcmp(mode, "locked"))
		ask_auditor();
	pthread_mutex_unlock(&mutex);
	return sum;
}

/* Makes the index, so that its pages are in memory as far as they fit. */
static void make_index(const char *path, size_t bytes)
{
	static uint8_t block[1 << 20];

	file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (file < 0)
		die(path);
	for (size_t at = 0; at < bytes; at += sizeof(block)) {
		memset(block, (int)(at >> 20) + 1, sizeof(block));
		if (write(file, block, sizeof(block)) != (ssize_t)sizeof(block))
			die(path);
	}
	/* Pages that are not on the disk yet could not be taken away. */
	if (fsync(file))
		die(path);
	pages = mmap(NULL, bytes, PROT_READ, MAP_SHARED, file, 0);
	if (pages == MAP_FAILED)
		die("mmap");
	/* Neighbours of a page are of no use to a search. */
	madvise((void *)pages, bytes, MADV_RANDOM);
	page_count = bytes / PAGE;
}

static uint64_t look_up(uint64_t state)
{
	uint64_t found = 0;

	for (int i = 0; i < LOOKUPS; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		found += pages[(state >> 33) % page_count * PAGE];
	}
	return found;
}

static void keep(unsigned account, uint64_t sum)
{
	char line[8192];
	int length = snprintf(line, sizeof(line), "%u %llu\n", account, (unsigned long long)sum);

	if (!strcmp(mode, "journal")) {
		memset(line + length, '.', line_bytes - length);
		if (write(file, line, line_bytes) != line_bytes || fsync(file))
			die("journal");
	} else if (!strcmp(mode, "log")) {
		memset(line + length, '.', line_bytes - length);
		if (write(file, line, line_bytes) < 0)
			die("log");
	}
}

static void *serve(void *argument)
{
	int connection = (int)(intptr_t)argument;
	char request[4096], answer[256], body[64];
	unsigned account = (unsigned)connection << 20; /* connections look up different pages */

	for (;;) {
		ssize_t got = read(connection, request, sizeof(request));
		uint64_t sum;
		int length;

		if (got <= 0)
			break;
		sum = pages ? look_up(++account) : book(++account);
		keep(account, sum);
		length = snprintf(body, sizeof(body), "%llu\n", (unsigned long long)sum);
		length = snprintf(answer, sizeof(answer), "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", length,
				  body);
		if (write(connection, answer, length) != length)
			break;
	}
	close(connection);
	return NULL;
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
	pthread_attr_t detached;

	if (argc < 3)
		return 2;
	mode = argv[2];
	at.sin_port = htons(atoi(argv[1]));
	if (!strcmp(mode, "locked") || !strcmp(mode, "unlocked"))
		wait_us = argc > 3 ? atol(argv[3]) : 0;
	if (!strcmp(mode, "index")) {
		if (argc < 5)
			return 2;
		make_index(argv[3], (size_t)atol(argv[4]) << 20);
	}
	if (!strcmp(mode, "journal") || !strcmp(mode, "log"))
		if (argc < 4 || (file = open(argv[3], O_WRONLY | O_APPEND | O_CREAT, 0644)) < 0)
			die("open");
	if (file >= 0)
		line_bytes = argc > 4 ? atol(argv[4]) : 200;
	if (line_bytes > 8192 || (file >= 0 && line_bytes < 64))
		return 2;
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (void *)&at, sizeof(at)) || listen(listener, 128))
		die("listen");
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	for (;;) {
		int connection = accept(listener, NULL, NULL);
		pthread_t thread;

		if (connection < 0)
			continue;
		setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		if (pthread_create(&thread, &detached, serve, (void *)(intptr_t)connection))
			close(connection);
	}
}
