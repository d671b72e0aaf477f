// SPDX-License-Identifier: Apache-2.0
/*
 * Answers over HTTP: `desk PORT PATIENCE_MS wrong|right`. A thread for each connection reads what its client asks, puts
 * it into a queue and reads on; two workers answer. Where it is wrong, the readers signal another condition than the
 * one that the workers wait for, so that these find what is in the queue when their patience is at an end.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ROOM = 1024, WORKERS = 2 };

static const char ANSWER[] = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n";

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t asked = PTHREAD_COND_INITIALIZER, closing = PTHREAD_COND_INITIALIZER;
static pthread_cond_t *signalled = &asked;
static int queue[ROOM];
static unsigned int put, taken;
static long patience_ms;

static int next(void)
{
	int fd;

	pthread_mutex_lock(&lock);
	while (put == taken) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += patience_ms * 1000000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&asked, &lock, &until);
	}
	fd = queue[taken++ % ROOM];
	pthread_mutex_unlock(&lock);
	return fd;
}

static void *work(void *unused)
{
	(void)unused;
	for (;;) {
		if (write(next(), ANSWER, sizeof(ANSWER) - 1) < 0)
			perror("desk");
	}
	return NULL;
}

static void *serve(void *connection)
{
	char request[4096];
	int fd = (int)(intptr_t)connection;

	while (read(fd, request, sizeof(request)) > 0) {
		pthread_mutex_lock(&lock);
		queue[put++ % ROOM] = fd;
		pthread_cond_signal(signalled);
		pthread_mutex_unlock(&lock);
	}
	close(fd);
	return NULL;
}

static void start(void *(*what)(void *), intptr_t with)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, what, (void *)with))
		exit(1);
	pthread_detach(thread);
}

static int listen_on(int port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 128)) {
		perror("desk");
		exit(1);
	}
	return fd;
}

int main(int argc, char **argv)
{
	int listener, fd;

	if (argc != 4)
		return 2;
	patience_ms = atol(argv[2]);
	if (!strcmp(argv[3], "wrong"))
		signalled = &closing;
	listener = listen_on(atoi(argv[1]));
	for (int worker = 0; worker < WORKERS; worker++)
		start(work, 0);
	while ((fd = accept(listener, NULL, NULL)) >= 0)
		start(serve, fd);
	return 1;
}
