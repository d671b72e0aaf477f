/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A web service with a thread for each connection, whose requests take so much CPU time each and share nothing:
 *
 *   pool PORT US
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static uint64_t each_ns;

static uint64_t used_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

/* Three kinds of work in turns, so that no function stands out. */
static __attribute__((noinline)) uint64_t mix(uint64_t sum)
{
	for (int i = 0; i < 4000; i++)
		sum = sum * 6364136223846793005u + (sum >> 29);
	return sum;
}

static __attribute__((noinline)) uint64_t fold(uint64_t sum)
{
	for (int i = 0; i < 4000; i++)
		sum = (sum << 7 | sum >> 57) ^ (uint64_t)i * 40503;
	return sum;
}

static __attribute__((noinline)) uint64_t step(uint64_t sum)
{
	for (int i = 0; i < 4000; i++)
		sum += sum % 1009 * 31 + 1;
	return sum;
}

static void *serve(void *argument)
{
	int connection = (int)(intptr_t)argument;
	char request[4096], answer[256];
	uint64_t sum = 1;

	while (read(connection, request, sizeof(request)) > 0) {
		uint64_t until = used_ns() + each_ns;
		int length;

		while (used_ns() < until)
			sum = step(fold(mix(sum)));
		length = snprintf(answer, sizeof(answer), "HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n%016llx\n",
				  (unsigned long long)sum);
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

	if (argc < 3)
		return 2;
	at.sin_port = htons(atoi(argv[1]));
	each_ns = (uint64_t)atol(argv[2]) * 1000;
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (void *)&at, sizeof(at)) || listen(listener, 128)) {
		perror("listen");
		return 1;
	}
	for (;;) {
		int connection = accept(listener, NULL, NULL);
		pthread_t thread;

		if (connection < 0)
			continue;
		setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		if (!pthread_create(&thread, NULL, serve, (void *)(intptr_t)connection))
			pthread_detach(thread);
		else
			close(connection);
	}
}
