/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A web service of leader and followers: of sixteen threads one at a time, the one with the mutex, waits at the epoll.
 * It takes one connection that has something to say, gives the mutex to the next, and answers.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define THREADS 16

static pthread_mutex_t leading = PTHREAD_MUTEX_INITIALIZER;
static int epoll, listener;

static void check(long result, const char *what)
{
	if (result < 0) {
		perror(what);
		exit(1);
	}
}

static void watch(int fd, int how)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.fd = fd};

	check(epoll_ctl(epoll, how, fd, &event), "epoll_ctl");
}

static void greet(void)
{
	int one = 1, fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd >= 0) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		watch(fd, EPOLL_CTL_ADD);
	}
	watch(listener, EPOLL_CTL_MOD);
}

static void answer(int fd)
{
	char request[4096], body[2048], reply[4096];
	uint64_t sum = 14695981039346656037u;
	int used = 0, length;

	if (read(fd, request, sizeof(request)) <= 0) {
		close(fd);
		return;
	}
	for (int line = 0; line < 30; line++) {
		for (int round = 0; round < 50; round++)
			sum = (sum ^ (uint64_t)(line + round)) * 1099511628211u;
		used += snprintf(body + used, sizeof(body) - used, "line %d: %016llx\n", line, (unsigned long long)sum);
	}
	length = snprintf(reply, sizeof(reply), "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", used, body);
	if (write(fd, reply, length) != length) {
		close(fd);
		return;
	}
	watch(fd, EPOLL_CTL_MOD);
}

static void *work(void *unused)
{
	struct epoll_event event;
	int ready;

	for (;;) {
		pthread_mutex_lock(&leading);
		ready = epoll_wait(epoll, &event, 1, -1);
		pthread_mutex_unlock(&leading);
		if (ready != 1)
			continue;
		if (event.data.fd == listener)
			greet();
		else
			answer(event.data.fd);
	}
	return unused;
}

int main(void)
{
	struct sockaddr_in here = {
		.sin_family = AF_INET, .sin_port = htons(8080), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	pthread_t thread;
	int one = 1;

	epoll = epoll_create1(EPOLL_CLOEXEC);
	check(epoll, "epoll_create1");
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	check(listener, "socket");
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	check(bind(listener, (struct sockaddr *)&here, sizeof(here)), "bind");
	check(listen(listener, 128), "listen");
	watch(listener, EPOLL_CTL_ADD);
	for (int i = 1; i < THREADS; i++)
		check(-pthread_create(&thread, NULL, work, NULL), "pthread_create");
	work(NULL);
	return 0;
}
