/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A service whose requests follow a script: its shape (a thread for each connection, a pool behind a reader, an event
 * loop) and what each request does, one after the other (compute, sleep, wait for a lock, ask a store), are drawn from
 * a seed. The script is printed as JSON, then ten times a second what requests have spent on each so far, by the clock
 * of the service, and how long their clients waited.
 *
 *   request SEED
 */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "../chains/script.h"

#define MOST_STEPS 4
#define MOST_CLIENTS 3

enum shape { THREADS, POOL, LOOP, SHAPES };
static const char *const shape_names[] = {"threads", "pool", "loop"};

enum kind { COMPUTE, ASK, SLEEP, LOCK, KINDS };
static const char *const kind_names[] = {"compute", "ask", "sleep", "lock"};

static struct {
	enum kind kind;
	uint64_t us;
} script[MOST_STEPS];
static unsigned steps, clients;
static int store_sleeps;
static struct sockaddr_in store_at;

/* Shared with the clients, who are other processes. */
static struct {
	uint64_t requests, response_ns, kinds_ns[KINDS];
} * totals;

static void add(uint64_t *to, uint64_t ns)
{
	__atomic_fetch_add(to, ns, __ATOMIC_RELAXED);
}

static int listen_at(struct sockaddr_in *at)
{
	socklen_t size = sizeof(*at);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	*at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (listener < 0 || bind(listener, (void *)at, size) || listen(listener, 16))
		die("listen");
	getsockname(listener, (void *)at, &size);
	return listener;
}

static int connect_to(const struct sockaddr_in *at)
{
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || connect(fd, (const void *)at, sizeof(*at)))
		die("connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

/* Messages are one number each, the store's answers the time at which it wrote them; whoever has nobody to talk to any
 * more ends. */
static uint64_t receive(int fd)
{
	uint64_t message;

	if (read(fd, &message, sizeof(message)) != sizeof(message))
		exit(0);
	return message;
}

static void say(int fd, uint64_t message)
{
	if (write(fd, &message, sizeof(message)) != sizeof(message))
		exit(0);
}

static void run_thread(void *(*body)(void *), intptr_t argument)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, body, (void *)argument))
		die("pthread_create");
}

/* The store: what is asked is for how long. */
static void *store_connection(void *argument)
{
	int fd = (intptr_t)argument;

	for (;;) {
		uint64_t us = receive(fd);

		if (store_sleeps)
			rest(us);
		else
			spin(us);
		say(fd, now_ns());
	}
	return NULL;
}

static void be_store(int listener)
{
	for (;;)
		run_thread(store_connection, accept(listener, NULL, NULL));
}

/* The lock's holder, who sleeps with it in hand. */
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static void *hold(void *argument)
{
	uint64_t us = (intptr_t)argument;

	for (;;) {
		pthread_mutex_lock(&held);
		rest(us);
		pthread_mutex_unlock(&held);
		rest(us / 2);
	}
	return NULL;
}

static void perform(int store)
{
	for (unsigned i = 0; i < steps; i++) {
		uint64_t began = now_ns(), us = script[i].us;

		switch (script[i].kind) {
		case COMPUTE:
			spin(us);
			break;
		case ASK:
			say(store, us);
			receive(store);
			break;
		case SLEEP:
			rest(us);
			break;
		default:
			pthread_mutex_lock(&held);
			pthread_mutex_unlock(&held);
		}
		add(&totals->kinds_ns[script[i].kind], now_ns() - began);
	}
}

static void *connection(void *argument)
{
	int fd = (intptr_t)argument, store = connect_to(&store_at);

	for (;;) {
		uint64_t message = receive(fd);

		perform(store);
		say(fd, message);
	}
	return NULL;
}

/* A pool: who reads hands over to whoever is free. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t some;
	int fds[MOST_CLIENTS];
	unsigned count;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .some = PTHREAD_COND_INITIALIZER};

static void *worker(void *argument)
{
	int store = connect_to(&store_at);

	(void)argument;
	for (;;) {
		int fd;

		pthread_mutex_lock(&queue.lock);
		while (!queue.count)
			pthread_cond_wait(&queue.some, &queue.lock);
		fd = queue.fds[--queue.count];
		pthread_mutex_unlock(&queue.lock);
		perform(store);
		say(fd, 1);
	}
	return NULL;
}

/* In a loop: where each connection stands in its script. */
static struct {
	int fd, store;
	unsigned next;
	uint64_t began;
} loop[MOST_CLIENTS];

static void go_on(unsigned nth)
{
	while (loop[nth].next < steps) {
		unsigned step = loop[nth].next;

		loop[nth].began = now_ns();
		if (script[step].kind == ASK) {
			say(loop[nth].store, script[step].us);
			return;
		}
		spin(script[step].us);
		add(&totals->kinds_ns[COMPUTE], now_ns() - loop[nth].began);
		loop[nth].next++;
	}
	loop[nth].next = 0;
	say(loop[nth].fd, 1);
}

static void be_event(enum shape shape, unsigned nth, int is_store)
{
	uint64_t message = receive(is_store ? loop[nth].store : loop[nth].fd);

	if (shape == POOL) {
		pthread_mutex_lock(&queue.lock);
		queue.fds[queue.count++] = loop[nth].fd;
		pthread_cond_signal(&queue.some);
		pthread_mutex_unlock(&queue.lock);
		return;
	}
	if (is_store) {
		/* Until the answer came; then it lies there until its turn. */
		add(&totals->kinds_ns[ASK], message - loop[nth].began);
		loop[nth].next++;
	}
	go_on(nth);
}

struct service {
	int listener;
	enum shape shape;
};

static void *serve(void *argument)
{
	struct service *service = argument;
	int epoll = epoll_create1(0);
	struct epoll_event event = {.events = EPOLLIN};

	for (unsigned i = 0; i < clients; i++) {
		int fd = accept(service->listener, NULL, NULL);

		if (service->shape == THREADS) {
			run_thread(connection, fd);
			continue;
		}
		if (service->shape == POOL)
			run_thread(worker, 0);
		loop[i].fd = fd;
		event.data.u32 = i * 2;
		epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
		if (service->shape == LOOP) {
			loop[i].store = connect_to(&store_at);
			event.data.u32 = i * 2 + 1;
			epoll_ctl(epoll, EPOLL_CTL_ADD, loop[i].store, &event);
		}
	}
	while (service->shape != THREADS)
		if (epoll_wait(epoll, &event, 1, -1) == 1)
			be_event(service->shape, event.data.u32 / 2, event.data.u32 % 2);
	return NULL;
}

static void be_client(const struct sockaddr_in *at)
{
	int fd = connect_to(at);

	for (;;) {
		uint64_t began = now_ns();

		say(fd, 1);
		receive(fd);
		add(&totals->response_ns, now_ns() - began);
		add(&totals->requests, 1);
		rest(2000 + draw(6000));
	}
}

/* A loop neither sleeps nor waits for locks: that would be another story. */
static void write_script(enum shape shape)
{
	unsigned holders = 0;

	steps = 1 + draw(MOST_STEPS);
	for (unsigned i = 0; i < steps; i++) {
		script[i].kind = draw(shape == LOOP ? SLEEP : KINDS);
		script[i].us = 1000 + 500 * draw(15);
		if (script[i].kind == LOCK && !holders++)
			run_thread(hold, script[i].us);
	}
}

static void print_script(enum shape shape)
{
	printf("{\"pid\": %d, \"shape\": \"%s\", \"clients\": %u, \"store_sleeps\": %s, \"script\": [", getpid(),
	       shape_names[shape], clients, store_sleeps ? "true" : "false");
	for (unsigned i = 0; i < steps; i++)
		printf("%s\"%s %llu us\"", i ? ", " : "", kind_names[script[i].kind], (unsigned long long)script[i].us);
	printf("]}\n");
}

static void print_totals(void)
{
	printf("{\"requests\": %llu, \"response\": %llu", (unsigned long long)totals->requests,
	       (unsigned long long)totals->response_ns);
	for (unsigned i = 0; i < KINDS; i++)
		printf(", \"%s\": %llu", kind_names[i], (unsigned long long)totals->kinds_ns[i]);
	printf("}\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct sockaddr_in at;
	struct service service;
	pid_t *pids = shared(sizeof(pid_t) * (MOST_CLIENTS + 1));
	int store;

	if (argc != 2)
		return 2;
	draw_from(argv[1]);
	service.shape = draw(SHAPES);
	clients = 1 + draw(MOST_CLIENTS);
	store_sleeps = draw(2);
	totals = shared(sizeof(*totals));
	prctl(PR_SET_NAME, "service");
	store = listen_at(&store_at);
	if (!start("store", &pids[MOST_CLIENTS]))
		be_store(store);
	service.listener = listen_at(&at);
	for (unsigned i = 0; i < clients; i++)
		if (!start("client", &pids[i]))
			be_client(&at);
	close(store);
	write_script(service.shape);
	run_thread(serve, (intptr_t)&service);
	print_script(service.shape);
	for (;;) {
		print_totals();
		rest(100000);
	}
}
