// SPDX-License-Identifier: Apache-2.0
// A bank over HTTP, a thread for each connection: a request moves money between two accounts, each of which has a mutex.
//   bank PORT ordered|unordered ACCOUNTS HOLD_US
//   bank PORT locked|unlocked RATES_PORT AFTER_MS   one account; after a while it asks for rates, once, with the account locked or not
//   bank PORT mute                                   takes questions, and answers none
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

struct Account {
	std::mutex lock;
	long balance = 0;
};

static std::vector<Account> accounts;
static std::string mode;
static std::chrono::microseconds hold;

static sockaddr_in loopback(int port)
{
	sockaddr_in address{};
	address.sin_family = AF_INET;
	address.sin_port = htons(port);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return address;
}

// What a request takes besides.
__attribute__((noinline)) static void check()
{
	auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
	while (std::chrono::steady_clock::now() < until) {
	}
}

__attribute__((noinline)) static void transfer(Account &from, Account &to)
{
	std::lock_guard<std::mutex> first(from.lock);
	std::this_thread::sleep_for(hold); // a look at what it may spend
	std::lock_guard<std::mutex> second(to.lock);
	from.balance--;
	to.balance++;
}

__attribute__((noinline)) static void deposit(Account &to)
{
	std::lock_guard<std::mutex> only(to.lock);
	to.balance++;
}

static void book(std::minstd_rand &random)
{
	if (accounts.size() == 1)
		return deposit(accounts[0]);
	size_t from = random() % accounts.size(), to = random() % (accounts.size() - 1);
	if (to >= from)
		to++;
	check();
	if (mode == "ordered" && from > to)
		std::swap(from, to);
	transfer(accounts[from], accounts[to]);
}

static void serve(int client)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n";
	std::minstd_rand random(client * 7919 + 1);
	std::string asked;
	char bytes[4096];
	ssize_t read_now;
	while ((read_now = read(client, bytes, sizeof(bytes))) > 0) {
		asked.append(bytes, read_now);
		if (asked.find("\r\n\r\n") == std::string::npos || mode == "mute")
			continue;
		asked.clear();
		book(random);
		if (write(client, answer, sizeof(answer) - 1) < 0)
			break;
	}
	close(client);
}

__attribute__((noinline)) static void ask_for_rates(int port)
{
	int rates = socket(AF_INET, SOCK_STREAM, 0);
	sockaddr_in address = loopback(port);
	char answer[256];
	if (connect(rates, (sockaddr *)&address, sizeof(address)) || write(rates, "rates\n", 6) < 0)
		perror("rates");
	else if (read(rates, answer, sizeof(answer)) > 0)
		puts("rates are known");
	close(rates);
}

static void refresh(int port, int after_ms)
{
	std::this_thread::sleep_for(std::chrono::milliseconds(after_ms));
	if (mode == "unlocked")
		return ask_for_rates(port);
	std::lock_guard<std::mutex> only(accounts[0].lock);
	ask_for_rates(port);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	mode = argv[2];
	bool moves = mode == "ordered" || mode == "unordered";
	accounts = std::vector<Account>(moves && argc > 3 ? atoi(argv[3]) : 1);
	if (moves && argc > 4)
		hold = std::chrono::microseconds(atoi(argv[4]));
	else if (argc > 4)
		std::thread(refresh, atoi(argv[3]), atoi(argv[4])).detach();
	int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	sockaddr_in address = loopback(atoi(argv[1]));
	if (bind(listener, (sockaddr *)&address, sizeof(address)) || listen(listener, 512)) {
		perror("listen");
		return 1;
	}
	for (;;) {
		int client = accept(listener, nullptr, nullptr);
		if (client < 0)
			continue;
		setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		std::thread(serve, client).detach();
	}
}
