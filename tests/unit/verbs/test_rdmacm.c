/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Commands and events of /dev/infiniband/rdma_cm. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <cm/attach_protocol.h>
#include <rdma/rdma_user_cm.h>

#include "rdmacm/rdmacm.h"
#include "rdmacm/router.h"
#include "rdmacm_daemon.h"

#define DEVICE 200 /* descriptor of the device; no other one gets this number */

/* --- The program */

/* The descriptor is DEVICE each time. */
static void open_device(pthread_t *server)
{
	int fd;

	assert_int_equal(pthread_create(server, NULL, serve, NULL), 0);
	fd = rdmacm_open(O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(dup2(fd, DEVICE), DEVICE);
	fd_duplicated(fd, DEVICE);
	fd_remove(fd);
	close(fd);
}

#define MS UINT64_C(1000000)

static uint64_t in_ms(uint64_t ms)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec + ms * MS;
}

/* A daemon that stands still: the kernel connects the program, and the welcome does not come. */
static void opening_waits_for_a_welcome_until_its_deadline(void **state)
{
	int socket;

	(void)state;
	assert_int_equal(rdmacm_open_until(O_CLOEXEC, in_ms(20)), -ETIMEDOUT);
	socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(socket >= 0);
	close(socket);
}

/* Other programs fill the queue of the daemon's connections. */
static void fill_queue(int fds[QUEUE + 1])
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/" CM_ATTACH_SOCKET_NAME, dir);
	for (int i = 0; i <= QUEUE; i++) {
		fds[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		assert_int_equal(
			connect(fds[i], (const struct sockaddr *)&address, sizeof(address)), 0);
	}
}

/* The daemon accepts the oldest connection, and ends it. */
static void refuse_connection(void)
{
	int socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	assert_true(socket >= 0);
	close(socket);
}

static void empty_queue(const int fds[QUEUE + 1])
{
	for (int i = 0; i <= QUEUE; i++) {
		refuse_connection();
		close(fds[i]);
	}
}

static void opening_waits_for_a_connection_until_its_deadline(void **state)
{
	int fds[QUEUE + 1];

	(void)state;
	fill_queue(fds);
	assert_int_equal(rdmacm_open_until(O_CLOEXEC, in_ms(20)), -ETIMEDOUT);
	assert_int_equal(rdmacm_open_until(O_CLOEXEC, in_ms(0)), -ETIMEDOUT);
	empty_queue(fds);
}

static void close_device(pthread_t server)
{
	fd_remove(DEVICE);
	close(DEVICE);
	assert_int_equal(pthread_join(server, NULL), 0);
}

/* 0 or an errno value. */
static int try_to_create_id(void)
{
	struct rdma_ucm_create_id_resp resp = {0};
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		struct rdma_ucm_create_id create;
	} c = {.hdr = {.cmd = RDMA_USER_CM_CMD_CREATE_ID,
		       .in = sizeof(c.create),
		       .out = sizeof(resp)},
	       .create = {.uid = UID, .response = (uintptr_t)&resp, .ps = RDMA_PS_TCP}};

	if (rdmacm_write(rdmacm_lookup(DEVICE), DEVICE, &c, sizeof(c)) < 0)
		return errno;
	assert_int_equal(resp.id, NUMBER);
	return 0;
}

static void create_id(void)
{
	assert_int_equal(try_to_create_id(), 0);
}

struct waiter {
	atomic_int tid;
	atomic_bool done;
	int error; /* errno value; 0: got an event */
};

static void *wait_for_event(void *arg)
{
	struct waiter *w = arg;
	struct rdma_ucm_event_resp event;
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		struct rdma_ucm_get_event get;
	} c = {.hdr = {.cmd = RDMA_USER_CM_CMD_GET_EVENT,
		       .in = sizeof(c.get),
		       .out = sizeof(event)},
	       .get = {.response = (uintptr_t)&event}};

	atomic_store(&w->tid, (int)syscall(SYS_gettid));
	w->error = rdmacm_write(rdmacm_lookup(DEVICE), DEVICE, &c, sizeof(c)) < 0 ? errno : 0;
	atomic_store(&w->done, true);
	return NULL;
}

static void fetch_event(void)
{
	static uint64_t sequence;
	struct waiter w = {.error = -1};

	send_event(++sequence, 0);
	wait_for_event(&w);
	assert_int_equal(w.error, 0);
}

/* The GUID of the reply: GUID from the cache, 0 from the daemon. */
static uint64_t query(uint32_t id, uint32_t option, uint16_t room)
{
	struct rdma_ucm_query_addr_resp resp = {.node_guid = 1};
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		struct rdma_ucm_query query;
	} c = {.hdr = {.cmd = RDMA_USER_CM_CMD_QUERY, .in = sizeof(c.query), .out = room},
	       .query = {.response = (uintptr_t)&resp, .id = id, .option = option}};

	assert_int_equal(rdmacm_write(rdmacm_lookup(DEVICE), DEVICE, &c, sizeof(c)), sizeof(c));
	return resp.node_guid;
}

/* The system call in which the thread sleeps, and its fourth argument; -1: it runs. */
static long sleeps_with(int tid, unsigned long *fourth)
{
	char path[64];
	long number;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	f = fopen(path, "re");
	if (!f)
		return -1;
	if (fscanf(f, "%ld %*s %*s %*s %lx", &number, fourth) != 2)
		number = -1;
	fclose(f);
	return number;
}

static long sleeps_in(int tid)
{
	unsigned long unused;

	return sleeps_with(tid, &unused);
}

/* Not in a recv that looks for an event before the wait: that one may sleep for a moment, too. */
static bool waits_for_an_event(int tid)
{
	unsigned long flags;

	return sleeps_with(tid, &flags) == SYS_recvfrom && flags == MSG_PEEK;
}

static void on_signal(int signal)
{
	(void)signal;
}

static atomic_int signals;

static void count_signal(int signal)
{
	(void)signal;
	atomic_fetch_add(&signals, 1);
}

static int count_descriptors(void)
{
	DIR *fds = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(fds);
	while (readdir(fds))
		n++;
	closedir(fds);
	return n;
}

/* The reconnecting thread has none left either: a program may close all descriptors itself. */
static void closing_the_last_device_leaves_no_descriptor(void **state)
{
	int before = count_descriptors();
	pthread_t server;

	(void)state;
	for (int i = 0; i < 3; i++) {
		open_device(&server);
		close(atomic_load(&event_socket));
		close_device(server);
		assert_int_equal(count_descriptors(), before);
	}
}

#define PATIENCE_MS 600000

static void *open_patiently(void *arg)
{
	struct waiter *w = arg;

	atomic_store(&w->tid, (int)syscall(SYS_gettid));
	w->error = -rdmacm_open_until(O_CLOEXEC, in_ms(PATIENCE_MS));
	atomic_store(&w->done, true);
	return NULL;
}

/* A thread that waits for a connection handles a signal, and waits on. */
static void a_signal_does_not_end_the_opening(void **state)
{
	const struct sigaction action = {.sa_handler = count_signal, .sa_flags = SA_RESTART};
	struct waiter w = {.error = -1};
	int fds[QUEUE + 1];
	pthread_t thread;

	(void)state;
	atomic_store(&signals, 0);
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	fill_queue(fds);
	assert_int_equal(pthread_create(&thread, NULL, open_patiently, &w), 0);
	while (sleeps_in(atomic_load(&w.tid)) != SYS_connect)
		sched_yield();
	assert_int_equal(pthread_kill(thread, SIGUSR1), 0);
	while (!atomic_load(&signals) ||
	       (!atomic_load(&w.done) && sleeps_in(atomic_load(&w.tid)) != SYS_connect))
		sched_yield();
	assert_false(atomic_load(&w.done));
	empty_queue(fds);
	refuse_connection();
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(w.error, ECONNRESET);
}

/* A thread waits for events of a device that is closed, and gets no event of the next device. */
static void a_waiting_thread_ignores_the_next_device(void **state)
{
	const struct sigaction action = {.sa_handler = on_signal};
	struct waiter w = {.error = -1};
	pthread_t old_server, server, thread;
	int old_socket;
	long wait;

	(void)state;
	/* With a kernel's rdma_cm, the thread waits in poll. */
	if (!access("/dev/infiniband/rdma_cm", R_OK | W_OK))
		skip();
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	open_device(&old_server);
	old_socket = atomic_load(&event_socket);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_event, &w), 0);
	while (!waits_for_an_event(atomic_load(&w.tid)))
		sched_yield();

	close_device(old_server);
	open_device(&server);
	create_id();
	close(old_socket);
	do {
		sched_yield();
		wait = sleeps_in(atomic_load(&w.tid));
	} while (!atomic_load(&w.done) && (wait == SYS_recvfrom || wait < 0));
	while (!atomic_load(&w.done)) {
		pthread_kill(thread, SIGUSR1);
		sched_yield();
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(w.error, EINTR);
	close(atomic_load(&event_socket));
	close_device(server);
}

#define ROOM sizeof(struct rdma_ucm_query_addr_resp)

static void replies_of_an_event_are_cached(void **state)
{
	pthread_t server;

	(void)state;
	open_device(&server);
	assert_true(query(NUMBER, RDMA_USER_CM_QUERY_ADDR, ROOM) == 0);
	fetch_event();
	for (int i = 0; i < 2; i++)
		assert_true(query(NUMBER, RDMA_USER_CM_QUERY_ADDR, ROOM) == GUID);
	assert_true(query(NUMBER + 1, RDMA_USER_CM_QUERY_ADDR, ROOM) == 0);
	assert_true(query(NUMBER, RDMA_USER_CM_QUERY_GID, ROOM) == 0);
	/* The daemon decides about a response that the program has too little room for. */
	assert_true(query(NUMBER, RDMA_USER_CM_QUERY_ADDR, ROOM - 8) == 0);
	assert_true(query(NUMBER, RDMA_USER_CM_QUERY_ADDR, ROOM) == GUID);
	close(atomic_load(&event_socket));
	close_device(server);
}

/* Each command of an ID may change what QUERY replies. */
static void a_command_drops_cached_replies(void **state)
{
	const struct {
		struct rdma_ucm_cmd_hdr hdr;
		struct rdma_ucm_notify notify;
	} c = {.hdr = {.cmd = RDMA_USER_CM_CMD_NOTIFY, .in = sizeof(c.notify)},
	       .notify = {.id = NUMBER}};
	pthread_t server;

	(void)state;
	open_device(&server);
	fetch_event();
	assert_true(query(NUMBER, RDMA_USER_CM_QUERY_ADDR, ROOM) == GUID);
	assert_int_equal(rdmacm_write(rdmacm_lookup(DEVICE), DEVICE, &c, sizeof(c)), sizeof(c));
	assert_true(query(NUMBER, RDMA_USER_CM_QUERY_ADDR, ROOM) == 0);
	fetch_event();
	close(atomic_load(&event_socket));
	close_device(server);
	/* The next open device starts with an empty cache. */
	open_device(&server);
	assert_true(query(NUMBER, RDMA_USER_CM_QUERY_ADDR, ROOM) == 0);
	close(atomic_load(&event_socket));
	close_device(server);
}

static void a_cached_reply_longer_than_its_packet_is_ignored(void **state)
{
	pthread_t server;

	(void)state;
	open_device(&server);
	for (uint32_t i = 1; i; i <<= 1) {
		excess = i;
		fetch_event();
		assert_true(query(NUMBER, RDMA_USER_CM_QUERY_ADDR, UINT16_MAX) == 0);
	}
	excess = 0;
	close(atomic_load(&event_socket));
	close_device(server);
}

/* The next command tells the daemon which event was fetched; GET_EVENT does where it asks. */
static void fetched_events_are_confirmed(void **state)
{
	struct waiter w = {.error = -1};
	pthread_t server;

	(void)state;
	open_device(&server);
	atomic_store(&confirmed, 0);
	send_event(1000000, 0);
	wait_for_event(&w);
	assert_int_equal(atomic_load(&confirmed), 0);
	create_id();
	assert_true(atomic_load(&fetched) == 1000000);
	/* An event that came again is skipped. */
	send_event(1000000, 1);
	send_event(1000007, 1);
	wait_for_event(&w);
	assert_int_equal(atomic_load(&confirmed), 1);
	assert_true(atomic_load(&fetched) == 1000007);
	close(atomic_load(&event_socket));
	close_device(server);
}

/* The daemon has counted the events, and does not come back. */
static void an_id_without_a_daemon_reports_all_its_events(void **state)
{
	struct rdma_ucm_destroy_id_resp resp = {0};
	const struct {
		struct rdma_ucm_cmd_hdr hdr;
		struct rdma_ucm_destroy_id destroy;
	} c = {.hdr = {.cmd = RDMA_USER_CM_CMD_DESTROY_ID,
		       .in = sizeof(c.destroy),
		       .out = sizeof(resp)},
	       .destroy = {.response = (uintptr_t)&resp, .id = NUMBER}};
	struct waiter w = {.error = -1};
	pthread_t server;

	(void)state;
	assert_int_equal(setenv("URXE_RECONNECT_S", "0", 1), 0);
	open_device(&server);
	create_id();
	for (int i = 0; i < 3; i++)
		fetch_event();
	/* This one is a multicast group's, which has the same number. */
	event_type = MULTICAST_JOIN;
	fetch_event();
	event_type = 0;
	shutdown(atomic_load(&served), SHUT_RDWR);
	close(atomic_load(&event_socket));
	wait_for_event(&w); /* DEVICE_REMOVAL */
	assert_int_equal(w.error, 0);
	assert_int_equal(rdmacm_write(rdmacm_lookup(DEVICE), DEVICE, &c, sizeof(c)), sizeof(c));
	assert_int_equal(resp.events_reported, 4);
	close_device(server);
	assert_int_equal(unsetenv("URXE_RECONNECT_S"), 0);
}

static bool rest_is_zero; /* all bytes behind the last command in its request were 0 */

int __real_rdmacm_route(struct rdmacm_file *file, struct rdmacm_request *request,
			struct rdmacm_response *response);
int __wrap_rdmacm_route(struct rdmacm_file *file, struct rdmacm_request *request,
			struct rdmacm_response *response);
int __wrap_rdmacm_route(struct rdmacm_file *file, struct rdmacm_request *request,
			struct rdmacm_response *response)
{
	rest_is_zero = true;
	for (size_t i = request->command.in; i < sizeof(request->in); i++)
		if (request->in[i])
			rest_is_zero = false;
	return __real_rdmacm_route(file, request, response);
}

static void *bind_in_short(void *arg)
{
	const struct {
		struct rdma_ucm_cmd_hdr hdr;
		uint32_t id;
		uint16_t addr_size, reserved;
	} c = {.hdr = {.cmd = RDMA_USER_CM_CMD_BIND, .in = sizeof(c) - sizeof(c.hdr)},
	       .id = NUMBER};

	rdmacm_write(rdmacm_lookup(DEVICE), DEVICE, &c, sizeof(c));
	return arg;
}

/* Runs the function in a thread whose stack has no byte 0 at first. */
static void run_with_dirty_stack(void *(*run)(void *))
{
	static uint8_t stack[1 << 20] __attribute__((aligned(1 << 16)));
	pthread_attr_t attr;
	pthread_t thread;

	memset(stack, 0xa5, sizeof(stack));
	assert_int_equal(pthread_attr_init(&attr), 0);
	assert_int_equal(pthread_attr_setstack(&attr, stack, sizeof(stack)), 0);
	assert_int_equal(pthread_create(&thread, &attr, run, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	pthread_attr_destroy(&attr);
}

/* The router reads whole structures. */
static void a_short_command_has_zeros_behind_it(void **state)
{
	pthread_t server;

	(void)state;
	open_device(&server);
	create_id();
	run_with_dirty_stack(bind_in_short);
	assert_true(rest_is_zero);
	close(atomic_load(&event_socket));
	close_device(server);
}

/* A bad address fails before the event is fetched: the next GET_EVENT gets it. */
static void an_event_is_kept_for_a_good_address(void **state)
{
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		struct rdma_ucm_get_event get;
	} c = {.hdr = {.cmd = RDMA_USER_CM_CMD_GET_EVENT,
		       .in = sizeof(c.get),
		       .out = sizeof(struct rdma_ucm_event_resp)}};
	const uint64_t bad[] = {0, 8, (uintptr_t)dir | UINT64_C(1) << 63};
	struct waiter w = {.error = -1};
	pthread_t server;

	(void)state;
	open_device(&server);
	send_event(2000000, 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		c.get.response = bad[i];
		errno = 0;
		assert_int_equal(rdmacm_write(rdmacm_lookup(DEVICE), DEVICE, &c, sizeof(c)), -1);
		assert_int_equal(errno, EFAULT);
	}
	wait_for_event(&w);
	assert_int_equal(w.error, 0);
	close(atomic_load(&event_socket));
	close_device(server);
}

/* A malformed packet ends the device's events. */
static void a_malformed_packet_ends_the_events(void **state)
{
	static const uint8_t zero[4096];
	struct cm_attach_event head = {.sequence = 1, .out = CM_ATTACH_BYTES + 1};
	const struct sigaction action = {.sa_handler = on_signal};
	struct waiter w = {.error = -1};
	pthread_t server, thread;

	(void)state;
	/* With a kernel's rdma_cm, the thread goes on to wait for that. */
	if (!access("/dev/infiniband/rdma_cm", R_OK | W_OK))
		skip();
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	for (size_t len = 1; len <= sizeof(zero); len <<= 1) {
		open_device(&server);
		send(atomic_load(&event_socket),
		     len == sizeof(zero) / 2 ? (const void *)&head : zero,
		     len == sizeof(zero) / 2 ? sizeof(head) : len, MSG_NOSIGNAL);
		atomic_store(&w.done, false);
		assert_int_equal(pthread_create(&thread, NULL, wait_for_event, &w), 0);
		/* GET_EVENT fails, since the device is open. */
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(w.error, EIO);
		close(atomic_load(&event_socket));
		close_device(server);
	}
}

static atomic_bool stop;

static void *wait_for_events(void *arg)
{
	struct waiter w;

	while (!atomic_load(&stop))
		wait_for_event(&w);
	return arg;
}

/* What a child does with the device that it inherits, and with one of its own. */
static void child_closes_and_opens(void)
{
	int fd;

	alarm(10);
	fd_remove(DEVICE);
	close(DEVICE);
	fd = rdmacm_open(O_CLOEXEC);
	if (fd < 0)
		_exit(1);
	fd_remove(fd);
	_exit(0);
}

/* The thread spends most of its time in the table of IDs, which it searches for one to report. */
static void a_child_of_fork_finds_no_lock_held(void **state)
{
	pthread_t server, thread;

	(void)state;
/* Its allocator has no fork handlers: the child would wait for a lock that another thread had. */
#ifdef __SANITIZE_ADDRESS__
	skip();
#endif
	assert_int_equal(setenv("URXE_RECONNECT_S", "0", 1), 0);
	open_device(&server);
	create_id();
	close(atomic_load(&event_socket));
	assert_int_equal(shutdown(atomic_load(&served), SHUT_RDWR), 0);
	assert_int_equal(pthread_join(server, NULL), 0);
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_events, NULL), 0);
	for (int i = 0; i < 20; i++) {
		pid_t child;
		int status;

		usleep(2000);
		assert_int_equal(pthread_create(&server, NULL, serve, NULL), 0);
		child = fork();
		if (!child)
			child_closes_and_opens();
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		assert_int_equal(pthread_join(server, NULL), 0);
		close(atomic_load(&event_socket));
	}
	atomic_store(&stop, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	fd_remove(DEVICE);
	close(DEVICE);
	assert_int_equal(unsetenv("URXE_RECONNECT_S"), 0);
}

/* --- A signal handler that forks while its thread is in a call of the device. */

static void (*answer)(void); /* the daemon answers the parent */
static int child_status;

/*
 * The parent's thread waits in the handler, so nothing else than the child could take the answer.
 * The child returns from the handler to the call.
 */
static void fork_in_handler(int number)
{
	const pid_t child = fork();

	(void)number;
	if (!child) {
		alarm(60); /* ends a child that waits for ever */
		return;
	}
	answer();
	if (waitpid(child, &child_status, 0) != child)
		abort();
}

static void set_forking_handler(void (*the_answer)(void))
{
	const struct sigaction action = {.sa_handler = fork_in_handler, .sa_flags = SA_RESTART};

	answer = the_answer;
	child_status = -1;
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
}

/* The call succeeds in the parent, and fails in the child. */
static void fork_in_call(void *(*call)(void *), long sleep, void (*the_answer)(void))
{
	struct waiter w = {.error = -1};
	pthread_t thread;

	set_forking_handler(the_answer);
	assert_int_equal(pthread_create(&thread, NULL, call, &w), 0);
	while (sleeps_in(atomic_load(&w.tid)) != sleep)
		sched_yield();
	assert_int_equal(pthread_kill(thread, SIGUSR1), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(child_status, 0);
	assert_int_equal(w.error, 0);
}

static void end_child(pid_t parent, int error)
{
	if (getpid() != parent)
		_exit(error ? 0 : 1);
}

static void break_silence(void)
{
	atomic_store(&silent, false);
}

static void *create_id_in_thread(void *arg)
{
	const pid_t parent = getpid();
	struct waiter *w = arg;

	atomic_store(&w->tid, (int)syscall(SYS_gettid));
	w->error = try_to_create_id();
	end_child(parent, w->error);
	return NULL;
}

static void the_reply_to_a_command_is_not_a_forked_childs(void **state)
{
	pthread_t server;

	(void)state;
	open_device(&server);
	atomic_store(&silent, true);
	fork_in_call(create_id_in_thread, SYS_recvfrom, break_silence);
	create_id();
	close(atomic_load(&event_socket));
	close_device(server);
}

static void send_late_event(void)
{
	send_event(3000000, 0);
}

static void *fetch_event_in_thread(void *arg)
{
	const pid_t parent = getpid();
	struct waiter *w = arg;

	wait_for_event(w);
	end_child(parent, w->error);
	return NULL;
}

static void an_event_is_not_a_forked_childs(void **state)
{
	pthread_t server;

	(void)state;
	/* With a kernel's rdma_cm, the thread waits in poll. */
	if (!access("/dev/infiniband/rdma_cm", R_OK | W_OK))
		skip();
	open_device(&server);
	fork_in_call(fetch_event_in_thread, SYS_recvfrom, send_late_event);
	close(atomic_load(&event_socket));
	close_device(server);
}

static void *open_in_thread(void *arg)
{
	const pid_t parent = getpid();
	struct waiter *w = arg;
	int fd;

	atomic_store(&w->tid, (int)syscall(SYS_gettid));
	fd = rdmacm_open(O_CLOEXEC);
	w->error = fd < 0 ? -fd : 0;
	end_child(parent, w->error);
	if (fd >= 0) {
		fd_remove(fd);
		close(fd);
	}
	return NULL;
}

static void a_welcome_is_not_a_forked_childs(void **state)
{
	pthread_t server;

	(void)state;
	atomic_store(&silent, true);
	assert_int_equal(pthread_create(&server, NULL, serve, NULL), 0);
	fork_in_call(open_in_thread, SYS_recvfrom, break_silence);
	close(atomic_load(&event_socket));
	assert_int_equal(pthread_join(server, NULL), 0);
}

/* --- Forks while their thread holds the lock of the list of devices. */

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);

static bool signals_at_create;

/* A signal comes while the thread of rdmacm_reconnect.c starts. */
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg)
{
	if (signals_at_create)
		raise(SIGUSR1);
	return __real_pthread_create(thread, attr, run, arg);
}

static void fork_and_go_on(int number)
{
	const pid_t child = fork();

	(void)number;
	if (!child)
		_exit(0);
	if (waitpid(child, &child_status, 0) != child)
		abort();
}

static void a_handler_may_fork_while_a_device_is_opened(void **state)
{
	pthread_t server;
	int fd;

	(void)state;
	alarm(60); /* ends a fork that waits for ever */
	child_status = -1;
	signal(SIGUSR1, fork_and_go_on);
	assert_int_equal(pthread_create(&server, NULL, serve, NULL), 0);
	signals_at_create = true;
	fd = rdmacm_open(O_CLOEXEC);
	signals_at_create = false;
	alarm(0);
	assert_true(fd >= 0);
	assert_int_equal(child_status, 0);
	fd_remove(fd);
	close(fd);
	close(atomic_load(&event_socket));
	assert_int_equal(pthread_join(server, NULL), 0);
}

static bool signals_at_fork;

static void raise_in_fork(void)
{
	if (!signals_at_fork)
		return;
	signals_at_fork = false;
	raise(SIGUSR1);
}

/* The lock is free afterwards. */
static void a_handler_may_fork_within_fork(void **state)
{
	pthread_t server;
	pid_t child;
	int status;

	(void)state;
	alarm(60); /* ends a fork that waits for ever */
	child_status = -1;
	signal(SIGUSR1, fork_and_go_on);
	signals_at_fork = true;
	child = fork();
	if (!child)
		_exit(0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(child_status, 0);
	open_device(&server);
	close(atomic_load(&event_socket));
	close_device(server);
	alarm(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closing_the_last_device_leaves_no_descriptor),
		cmocka_unit_test(opening_waits_for_a_welcome_until_its_deadline),
		cmocka_unit_test(opening_waits_for_a_connection_until_its_deadline),
		cmocka_unit_test(a_signal_does_not_end_the_opening),
		cmocka_unit_test(a_waiting_thread_ignores_the_next_device),
		cmocka_unit_test(replies_of_an_event_are_cached),
		cmocka_unit_test(a_command_drops_cached_replies),
		cmocka_unit_test(a_cached_reply_longer_than_its_packet_is_ignored),
		cmocka_unit_test(fetched_events_are_confirmed),
		cmocka_unit_test(an_id_without_a_daemon_reports_all_its_events),
		cmocka_unit_test(a_short_command_has_zeros_behind_it),
		cmocka_unit_test(an_event_is_kept_for_a_good_address),
		cmocka_unit_test(a_malformed_packet_ends_the_events),
		cmocka_unit_test(a_child_of_fork_finds_no_lock_held),
		cmocka_unit_test(the_reply_to_a_command_is_not_a_forked_childs),
		cmocka_unit_test(an_event_is_not_a_forked_childs),
		cmocka_unit_test(a_welcome_is_not_a_forked_childs),
		cmocka_unit_test(a_handler_may_fork_while_a_device_is_opened),
		cmocka_unit_test(a_handler_may_fork_within_fork),
	};

	/* First, so that it runs after the device's handlers, which take their locks. */
	pthread_atfork(raise_in_fork, NULL, NULL);
	return cmocka_run_group_tests(tests, setup, teardown);
}
