// SPDX-License-Identifier: Apache-2.0
// A web service of an event loop and eight workers: the loop reads requests and hands them over by a queue with a
// condition variable; a worker answers, and gives the connection back to the loop.
#include <arpa/inet.h>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace {

std::mutex mutex;
std::condition_variable wanted;
std::deque<int> queue;
int epoll;

void check(int result, const char *what)
{
	if (result < 0) {
		std::perror(what);
		std::exit(1);
	}
}

void watch(int fd, int how, unsigned once)
{
	epoll_event event{};
	event.events = EPOLLIN | once;
	event.data.fd = fd;
	check(epoll_ctl(epoll, how, fd, &event), "epoll_ctl");
}

void answer(int fd)
{
	std::map<std::string, int> words;
	for (int i = 0; i < 60; i++)
		words["word " + std::to_string(i * 7919 % 40)] += i;
	std::string body;
	for (const auto &[word, count] : words)
		body += word + ": " + std::to_string(count) + "\n";
	std::string reply =
		"HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
	if (write(fd, reply.data(), reply.size()) != static_cast<ssize_t>(reply.size())) {
		close(fd);
		return;
	}
	watch(fd, EPOLL_CTL_MOD, EPOLLONESHOT);
}

void work()
{
	for (;;) {
		std::unique_lock lock(mutex);
		wanted.wait(lock, [] { return !queue.empty(); });
		int fd = queue.front();
		queue.pop_front();
		lock.unlock();
		answer(fd);
	}
}

void hand_over(int fd)
{
	char request[4096];
	if (read(fd, request, sizeof(request)) <= 0) {
		close(fd);
		return;
	}
	std::lock_guard lock(mutex);
	queue.push_back(fd);
	wanted.notify_one();
}

} // namespace

int main()
{
	sockaddr_in here{};
	here.sin_family = AF_INET;
	here.sin_port = htons(8080);
	here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int one = 1;

	epoll = epoll_create1(EPOLL_CLOEXEC);
	check(epoll, "epoll_create1");
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	check(listener, "socket");
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	check(bind(listener, reinterpret_cast<sockaddr *>(&here), sizeof(here)), "bind");
	check(listen(listener, 128), "listen");
	watch(listener, EPOLL_CTL_ADD, 0);
	for (int i = 0; i < 8; i++)
		std::thread(work).detach();
	for (;;) {
		epoll_event events[16];
		int ready = epoll_wait(epoll, events, 16, -1);
		for (int i = 0; i < ready; i++) {
			if (events[i].data.fd != listener) {
				hand_over(events[i].data.fd);
				continue;
			}
			int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
			if (fd >= 0) {
				setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
				watch(fd, EPOLL_CTL_ADD, EPOLLONESHOT);
			}
		}
	}
}
