// SPDX-License-Identifier: Apache-2.0
/*
 * Serves a price over HTTP from one epoll loop: `quote PORT STORE_PORT EVERY HOW`. For one in EVERY requests it asks a
 * store, over a connection that it keeps, and waits for the answer: in a read (HOW 0), in a poll with a timeout before
 * that (1), or in a loop of its own, with a set of files in which its clients are not (2).
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static const char ANSWER[] = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n42\n";
static const char QUESTION[] = "GET /price HTTP/1.1\r\nHost: store\r\n\r\n";

enum { READ, POLL, LOOP };

static int store = -1, store_set, how;

static struct sockaddr_in at_port(int port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
}

static void no_delay(int fd)
{
	int yes = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

static void watch(int set, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data = {.fd = fd}};

	epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
}

static void ask_store(int port)
{
	struct sockaddr_in at = at_port(port);
	struct pollfd ready = {.events = POLLIN};
	struct epoll_event event;
	char reply[4096];

	if (store < 0) {
		store = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(store, (struct sockaddr *)&at, sizeof(at)))
			exit(1);
		no_delay(store);
		store_set = epoll_create1(0);
		watch(store_set, store);
	}
	if (write(store, QUESTION, sizeof(QUESTION) - 1) < 0)
		exit(1);
	ready.fd = store;
	if (how == POLL && poll(&ready, 1, 2000) <= 0)
		exit(1);
	if (how == LOOP && epoll_wait(store_set, &event, 1, -1) <= 0)
		exit(1);
	if (read(store, reply, sizeof(reply)) <= 0)
		exit(1);
}

static void answer(int fd, int store_port, int every)
{
	static unsigned int requests;
	char request[4096];

	if (read(fd, request, sizeof(request)) <= 0) {
		close(fd);
		return;
	}
	if (requests++ % every == 0)
		ask_store(store_port);
	if (write(fd, ANSWER, sizeof(ANSWER) - 1) < 0)
		close(fd);
}

static int listen_on(int port)
{
	struct sockaddr_in at = at_port(port);
	int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 128)) {
		perror("quote");
		exit(1);
	}
	return fd;
}

int main(int argc, char **argv)
{
	int listener, set = epoll_create1(0);
	struct epoll_event ready[16];

	if (argc != 5)
		return 2;
	signal(SIGPIPE, SIG_IGN); /* a client may go while it waits */
	how = atoi(argv[4]);
	listener = listen_on(atoi(argv[1]));
	watch(set, listener);
	for (;;) {
		int n = epoll_wait(set, ready, 16, -1);

		for (int i = 0; i < n; i++) {
			int fd = ready[i].data.fd;

			if (fd != listener) {
				answer(fd, atoi(argv[2]), atoi(argv[3]));
				continue;
			}
			fd = accept(listener, NULL, NULL);
			no_delay(fd);
			watch(set, fd);
		}
	}
}
