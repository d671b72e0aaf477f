/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small web server for a CPU of its own: one thread, epoll_wait with timeout 0, and an answer
 * that takes some work (a table of squares, formatted for each request, with its checksum).
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS 64
#define ROWS 84

static int listener(uint16_t port)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 128) < 0) {
		perror("pollwork: failed to listen");
		exit(1);
	}
	return fd;
}

static uint32_t checksum(const char *bytes, size_t length)
{
	uint32_t a = 1, b = 0;
	for (size_t i = 0; i < length; i++) {
		a = (a + (unsigned char)bytes[i]) % 65521;
		b = (b + a) % 65521;
	}
	return b << 16 | a;
}

static void answer(int fd, unsigned serial)
{
	char body[ROWS * 24 + 32], reply[sizeof(body) + 128];
	size_t length = 0;
	for (unsigned row = 0; row < ROWS; row++) {
		unsigned n = serial % 1000 + row;
		length += (size_t)snprintf(body + length, 24, "%u %u\n", n, n * n);
	}
	length += (size_t)snprintf(body + length, 16, "%08x\n", checksum(body, length));
	int size = snprintf(reply, sizeof(reply), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%.*s", length,
			    (int)length, body);
	if (send(fd, reply, (size_t)size, MSG_NOSIGNAL) < 0 && errno != EAGAIN)
		close(fd);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fputs("usage: pollwork PORT\n", stderr);
		return 2;
	}
	int accepting = listener((uint16_t)atoi(argv[1])), epoll = epoll_create1(EPOLL_CLOEXEC), one = 1;
	struct epoll_event event = {.events = EPOLLIN, .data.fd = accepting}, events[EVENTS];
	epoll_ctl(epoll, EPOLL_CTL_ADD, accepting, &event);
	for (unsigned serial = 0;;) {
		int ready = epoll_wait(epoll, events, EVENTS, 0);
		for (int i = 0; i < ready; i++) {
			int fd = events[i].data.fd;
			char request[2048];
			if (fd == accepting) {
				event.data.fd = accept4(accepting, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
				setsockopt(event.data.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
				epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
			} else if (recv(fd, request, sizeof(request), 0) <= 0) {
				close(fd);
			} else {
				answer(fd, serial++);
			}
		}
	}
}
