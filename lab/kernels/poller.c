// SPDX-License-Identifier: Apache-2.0
// A service with one thread that asks for events with timeout 0, for ever, and gets none.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void *poll_for_ever(void *unused)
{
	int queue = epoll_create1(0);
	struct epoll_event wanted = {.events = EPOLLIN}, found[8];

	(void)unused;
	pthread_setname_np(pthread_self(), "poller");
	if (epoll_ctl(queue, EPOLL_CTL_ADD, eventfd(0, 0), &wanted))
		perror("epoll_ctl");
	for (;;)
		epoll_wait(queue, found, 8, 0);
	return NULL;
}

int main(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, poll_for_ever, NULL))
		return 1;
	for (;;)
		pause();
}
