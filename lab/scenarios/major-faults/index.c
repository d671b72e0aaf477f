/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A search service with an index that it maps into memory: each request looks at pages all over it. A thread for each
 * connection.
 *
 *   index PORT FILE MEGABYTES      the file is made first, so that its pages are in memory as far as they fit
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
#include <unistd.h>

#define PAGE 4096
#define LOOKUPS 16

static const uint8_t *pages;
static size_t page_count;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void make_index(const char *path, size_t bytes)
{
	static uint8_t block[1 << 20];
	int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

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

static unsigned look_up(uint64_t *state)
{
	unsigned found = 0;

	for (int i = 0; i < LOOKUPS; i++) {
		*state = *state * 6364136223846793005u + 1442695040888963407u;
		found += pages[(*state >> 33) % page_count * PAGE];
	}
	return found;
}

static void *serve(void *argument)
{
	int connection = (int)(intptr_t)argument;
	char request[4096], answer[256], body[64];
	uint64_t state = (uint64_t)connection * 2654435761u;

	while (read(connection, request, sizeof(request)) > 0) {
		int length = snprintf(body, sizeof(body), "%u\n", look_up(&state));

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

	if (argc < 4)
		return 2;
	make_index(argv[2], (size_t)atol(argv[3]) << 20);
	at.sin_port = htons(atoi(argv[1]));
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (void *)&at, sizeof(at)) || listen(listener, 128))
		die("listen");
	for (;;) {
		int connection = accept(listener, NULL, NULL);
		pthread_t thread;

		if (connection < 0)
			continue;
		setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)connection))
			close(connection);
		else
			pthread_detach(thread);
	}
}
