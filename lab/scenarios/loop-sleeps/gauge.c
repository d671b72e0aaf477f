// SPDX-License-Identifier: Apache-2.0
/*
 * Serves a reading over HTTP from one epoll loop: `gauge PORT DELAY_US`. Each reading takes so long, asleep, so that
 * the loop finds the next request ready whenever it asks, and never waits for one.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static const char ANSWER[] = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n42\n";

static void take_reading(useconds_t delay_us)
{
	if (delay_us)
		usleep(delay_us);
}

static void answer(int fd, useconds_t delay_us)
{
	char request[4096];

	if (read(fd, request, sizeof(request)) <= 0) {
		close(fd);
		return;
	}
	take_reading(delay_us);
	if (write(fd, ANSWER, sizeof(ANSWER) - 1) < 0)
		close(fd);
}

static int listen_on(int port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 128)) {
		perror("gauge");
		exit(1);
	}
	return fd;
}

static void watch(int set, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data = {.fd = fd}};

	epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
}

int main(int argc, char **argv)
{
	int listener, set = epoll_create1(0), yes = 1;
	struct epoll_event ready[16];

	if (argc != 3)
		return 2;
	listener = listen_on(atoi(argv[1]));
	watch(set, listener);
	for (;;) {
		int n = epoll_wait(set, ready, 16, -1);

		for (int i = 0; i < n; i++) {
			int fd = ready[i].data.fd;

			if (fd != listener) {
				answer(fd, atoi(argv[2]));
				continue;
			}
			fd = accept(listener, NULL, NULL);
			setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
			watch(set, fd);
		}
	}
}
