// SPDX-License-Identifier: Apache-2.0
/*
 * Sells tickets over HTTP, a connection each: `tickets PORT BACKLOG DELAY_US`. One thread takes a connection, answers,
 * closes, and then pauses for so long before it takes the next.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char ANSWER[] = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n";

static int listen_on(int port, int backlog)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, backlog)) {
		perror("tickets");
		exit(1);
	}
	return fd;
}

static void sell(int fd)
{
	char request[4096];

	if (read(fd, request, sizeof(request)) > 0 && write(fd, ANSWER, sizeof(ANSWER) - 1) < 0)
		perror("tickets");
	close(fd);
}

static void pause_for(useconds_t delay_us)
{
	if (delay_us)
		usleep(delay_us);
}

int main(int argc, char **argv)
{
	int listener;

	if (argc != 4)
		return 2;
	listener = listen_on(atoi(argv[1]), atoi(argv[2]));
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fd >= 0)
			sell(fd);
		pause_for(atoi(argv[3]));
	}
}
