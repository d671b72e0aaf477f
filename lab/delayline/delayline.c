// SPDX-License-Identifier: Apache-2.0
/*
 * One end of a long line: a TUN interface whose packets reach the other end after a delay, in UDP datagrams. Started
 * once in each of two network namespaces it makes a round trip of twice the delay, on kernels without netem.
 *
 *     delayline OWN_ADDRESS OWN_CARRIER OTHER_CARRIER DELAY_MS
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PORT 19299
#define MTU 1400
#define LINE 8192 /* packets that are on their way at most */

static struct packet {
	int64_t due_ns;
	ssize_t length;
	char bytes[MTU];
} line[LINE];

static void check(int result, const char *what)
{
	if (result < 0) {
		perror(what);
		exit(1);
	}
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static struct sockaddr_in address(const char *text)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(PORT)};

	if (inet_pton(AF_INET, text, &in.sin_addr) != 1) {
		fprintf(stderr, "delayline: `%s` is no address\n", text);
		exit(1);
	}
	return in;
}

static int open_tun(const char *own)
{
	int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK), control = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq request = {.ifr_name = "line"};
	struct sockaddr_in in = address(own), mask = address("255.255.255.0");

	check(tun, "/dev/net/tun");
	request.ifr_flags = IFF_TUN | IFF_NO_PI;
	check(ioctl(tun, TUNSETIFF, &request), "TUNSETIFF");
	memcpy(&request.ifr_addr, &in, sizeof(in));
	check(ioctl(control, SIOCSIFADDR, &request), "SIOCSIFADDR");
	memcpy(&request.ifr_netmask, &mask, sizeof(mask));
	check(ioctl(control, SIOCSIFNETMASK, &request), "SIOCSIFNETMASK");
	request.ifr_mtu = MTU;
	check(ioctl(control, SIOCSIFMTU, &request), "SIOCSIFMTU");
	request.ifr_qlen = 5000; /* a short queue would lose packets, which is another fault */
	check(ioctl(control, SIOCSIFTXQLEN, &request), "SIOCSIFTXQLEN");
	request.ifr_flags = IFF_UP | IFF_RUNNING;
	check(ioctl(control, SIOCSIFFLAGS, &request), "SIOCSIFFLAGS");
	close(control);
	return tun;
}

static int open_carrier(const char *own, const char *other)
{
	int carrier = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0), room = 8 << 20;
	struct sockaddr_in near = address(own), far = address(other);

	check(carrier, "socket");
	setsockopt(carrier, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	check(bind(carrier, (struct sockaddr *)&near, sizeof(near)), "bind");
	check(connect(carrier, (struct sockaddr *)&far, sizeof(far)), "connect");
	return carrier;
}

int main(int argc, char **argv)
{
	unsigned long first = 0, next = 0; /* packets on their way: from, to */
	int64_t delay_ns;
	char bytes[MTU];
	int tun, carrier;

	if (argc != 5)
		return 2;
	delay_ns = atoll(argv[4]) * 1000000;
	tun = open_tun(argv[1]);
	carrier = open_carrier(argv[2], argv[3]);
	for (;;) {
		struct pollfd both[] = {{.fd = tun, .events = POLLIN}, {.fd = carrier, .events = POLLIN}};
		int64_t wait_ns = first < next ? line[first % LINE].due_ns - now_ns() : 1000000000;
		struct timespec timeout = {wait_ns / 1000000000, wait_ns % 1000000000};
		ssize_t length;

		if (wait_ns > 0)
			ppoll(both, 2, &timeout, NULL);
		while (next - first < LINE) {
			struct packet *packet = &line[next % LINE];

			packet->length = read(tun, packet->bytes, MTU);
			if (packet->length <= 0)
				break;
			packet->due_ns = now_ns() + delay_ns;
			next++;
		}
		/* The other end may not be there yet; then packets are lost, as on any line. */
		for (; first < next && line[first % LINE].due_ns <= now_ns(); first++)
			(void)!send(carrier, line[first % LINE].bytes, line[first % LINE].length, 0);
		while ((length = recv(carrier, bytes, MTU, 0)) > 0)
			(void)!write(tun, bytes, length);
	}
}
