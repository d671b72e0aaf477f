/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers of many feeds: a thread for each, which takes its datagrams and counts them.
 *
 *   feeds PORT THREADS US           feed I comes to UDP port PORT+1+I; each look gives up after US, 0 = waits
 *   feeds send PORT THREADS RATE    sends so many datagrams a second to each
 *
 * The reader accepts on TCP port PORT once all threads are there.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int first_port;
static long give_up_us;
static volatile uint64_t taken[512];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static struct sockaddr_in at(int port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void *reader(void *argument)
{
	int feed = (int)(intptr_t)argument;
	struct timespec patience = {.tv_nsec = give_up_us * 1000};
	struct sockaddr_in address = at(first_port + 1 + feed);
	int from = socket(AF_INET, SOCK_DGRAM, 0);
	char message[512];

	if (from < 0 || bind(from, (void *)&address, sizeof(address)))
		die("bind");
	for (;;) {
		struct pollfd ready = {.fd = from, .events = POLLIN};
		int there = ppoll(&ready, 1, give_up_us ? &patience : NULL, NULL);

		if (there < 0)
			die("ppoll");
		if (there && recv(from, message, sizeof(message), 0) >= 0)
			taken[feed]++;
	}
	return NULL;
}

static void send_all(int threads, int rate)
{
	struct timespec pause = {.tv_nsec = 1000000000L / rate};
	int to = socket(AF_INET, SOCK_DGRAM, 0);

	for (;;) {
		for (int feed = 0; feed < threads; feed++) {
			struct sockaddr_in address = at(first_port + 1 + feed);

			if (sendto(to, "tick", 4, 0, (void *)&address, sizeof(address)) < 0)
				die("sendto");
		}
		nanosleep(&pause, NULL);
	}
}

int main(int argc, char **argv)
{
	int sends = argc > 1 && !strcmp(argv[1], "send"), threads, one = 1;
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in address;

	if (argc < 4 + sends)
		return 2;
	first_port = atoi(argv[1 + sends]);
	threads = atoi(argv[2 + sends]);
	if (threads < 1 || threads > 512)
		return 2;
	if (sends)
		send_all(threads, atoi(argv[4]));
	give_up_us = atol(argv[3]);
	for (int feed = 0; feed < threads; feed++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, reader, (void *)(intptr_t)feed))
			die("pthread_create");
	}
	address = at(first_port);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (void *)&address, sizeof(address)) || listen(listener, 8))
		die("listen");
	for (;;)
		close(accept(listener, NULL, NULL));
}
