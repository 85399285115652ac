/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The control socket: a thread plays the daemon, the test is the client. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <vnic/attach_protocol.h>

#include "common/clock.h"
#include "common/rundir.h"
#include "common/sealed_text.h"
#include "common/unix_packet.h"
#include "descriptor_limit.h"
#include "urxed/report/control.h"
#include "urxed/report/control_client.h"
#include "urxed/report/process_states.h"

#define ROUND_MS 10
#define WAIT_MS  1000
/* Time for an answer that certainly comes. */
#define PATIENCE_MS 20000
/* Time before and after a signal to the client. */
#define INTERRUPT_US 200000

/* Numbers of the ports of processes, and the number of processes that end before they answer. */
#define ANSWERED    5
#define FLOODED     7
#define FIRST_OTHER 100
#define OTHERS      20
/* Processes that the daemon has asked, in a report to a client with fewer descriptors. */
#define ASKED 200

static char top[] = "/tmp/test-control-XXXXXX";
static struct control control;
static pthread_t thread;
static atomic_bool stop;
static const char *text;
static int refusal;
static atomic_int capturing = -1; /* socket of the running capture */
/* The state that each process sends; NULL: the client asks no process. */
static const char *process_state;
/* Whether the daemon interrupts the client before it answers. */
static atomic_bool interrupts;
static pthread_t client_thread;

static void answer(int socket, const void *bytes, uint32_t len, const char *told)
{
	int fds[UNIX_PACKET_FDS] = {told ? sealed_text_make(told, strlen(told)) : -1, -1};

	assert_int_equal(unix_packet_send(socket, bytes, len, fds, fds[0] >= 0), 0);
	if (fds[0] >= 0)
		close(fds[0]);
}

/* A socket that no process reads, and whose last close waits for a reader. */
static int lingering_socket(void)
{
	const struct linger linger = {.l_onoff = 1, .l_linger = 600};
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(address);
	static char bytes[65536];

	assert_int_equal(bind(listener, (const struct sockaddr *)&address, len), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &len), 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&address, len), 0);
	/* The peer stays open until the test ends. */
	assert_true(accept(listener, NULL, NULL) >= 0);
	close(listener);
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	return fd;
}

/* Descriptors whose close would wait for 10 minutes, as what is read and as what is not. */
static void answer_lingering(int socket)
{
	const struct vnic_attach_state progress = {.status = -EINPROGRESS};
	int fds[UNIX_PACKET_FDS] = {lingering_socket(), lingering_socket()};

	assert_int_equal(unix_packet_send(socket, &progress, sizeof(progress), fds, 2), 0);
	close(fds[0]);
	close(fds[1]);
}

/*
 * Malformed packets, then the state of the process, then what the client does not read, but closes:
 * the state again, and descriptors.
 */
static void answer_with_state(int socket)
{
	const struct vnic_attach_state good = {.status = 0}, bad = {.status = -ENOMEM};

	answer(socket, "x", 1, process_state);
	answer_lingering(socket);
	answer(socket, &bad, sizeof(bad), NULL);
	answer(socket, &good, sizeof(good), process_state);
	answer(socket, &good, sizeof(good), process_state);
	answer_lingering(socket);
}

/* Gives the client the socket of the process with that port; returns the process's end. */
static int make_socket(int client, uint32_t port)
{
	const struct control_processes packet = {
		.version = CONTROL_VERSION, .n = 1, .ports = {port}};
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(unix_packet_send(client, &packet, sizeof(packet), ends, 1), 0);
	close(ends[0]);
	return ends[1];
}

/* A process that says for ever that it makes progress, or has no document. */
static void answer_without_end(int socket)
{
	const struct vnic_attach_state progress = {.status = -EINPROGRESS};

	assert_int_equal(fcntl(socket, F_SETFL, O_NONBLOCK), 0);
	while (!unix_packet_send(socket, &progress, sizeof(progress), NULL, 0))
		;
}

static void ignore_signal(int number)
{
	(void)number;
}

/* Gives the client time to begin its wait, has its system call fail with EINTR, and gives it time
 * to handle that. */
static void interrupt_client(void)
{
	usleep(INTERRUPT_US);
	assert_int_equal(pthread_kill(client_thread, SIGUSR1), 0);
	usleep(INTERRUPT_US);
}

static int show(void *ctx, int client)
{
	int flooded, socket;
	uint32_t i;

	assert_ptr_equal(ctx, &control);
	assert_int_equal(client >= 0, process_state != NULL);
	if (interrupts)
		interrupt_client();
	if (client >= 0) {
		flooded = make_socket(client, FLOODED);
		socket = make_socket(client, ANSWERED);
		for (i = 0; i < OTHERS; i++)
			close(make_socket(client, FIRST_OTHER + i));
		answer_without_end(flooded);
		answer_with_state(socket);
		close(socket);
		close(flooded);
	}
	return refusal ? refusal : sealed_text_make(text, strlen(text));
}

static int capture(void *ctx, int socket, const char *port, bool record)
{
	(void)record;
	assert_ptr_equal(ctx, &control);
	if (strcmp(port, "good"))
		return -EBUSY;
	capturing = socket;
	return sealed_text_make("ring", 4);
}

static bool capture_end(void *ctx, int socket)
{
	assert_ptr_equal(ctx, &control);
	if (socket != capturing)
		return false;
	close(socket);
	capturing = -1;
	return true;
}

static void record(void *ctx, int socket)
{
	(void)ctx;
	(void)socket;
}

static const struct control_ops ops = {show, capture, record, capture_end};

static void *serve(void *unused)
{
	struct pollfd pfd = {control.epoll_fd, POLLIN, 0};

	(void)unused;
	while (!atomic_load(&stop))
		if (poll(&pfd, 1, ROUND_MS) > 0)
			control_event(&control, now_ns());
		else
			control_tick(&control, now_ns());
	return NULL;
}

static int setup(void **state)
{
	const struct sigaction action = {.sa_handler = ignore_signal};

	(void)state;
	client_thread = pthread_self();
	return sigaction(SIGUSR1, &action, NULL) || !mkdtemp(top) ||
	       control_open(&control, top, &ops, &control) ||
	       pthread_create(&thread, NULL, serve, NULL);
}

static int teardown(void **state)
{
	(void)state;
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	control_close(&control, top);
	/* Succeeds only if the daemon has removed its socket. */
	return rmdir(top);
}

static int connect_to_it(void)
{
	struct sockaddr_un address;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(unix_packet_address(&address, top, CONTROL_SOCKET_NAME), 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void assert_answers(const char *expected)
{
	char error[CONTROL_CLIENT_ERROR] = "";
	json_t *report;

	text = expected;
	report = control_client_report(top, 0, error);
	assert_non_null(report);
	assert_int_equal(json_integer_value(json_object_get(report, "a")), 1);
	json_decref(report);
}

static void report_arrives_complete(void **state)
{
	char *long_text = malloc(1000001);

	(void)state;
	assert_answers("{\"a\": 1}");
	assert_non_null(long_text);
	memset(long_text, ' ', 1000000);
	strcpy(long_text + 1000000 - 8, "{\"a\":1}");
	assert_answers(long_text);
	free(long_text);
}

static void failed_report_has_an_error_text(void **state)
{
	char error[CONTROL_CLIENT_ERROR] = "";

	(void)state;
	text = "{\"a\": ";
	assert_null(control_client_report(top, 0, error));
	assert_non_null(strstr(error, "another version"));
	refusal = -ENOMEM;
	assert_null(control_client_report(top, 0, error));
	assert_non_null(strstr(error, strerror(ENOMEM)));
	refusal = 0;
	assert_null(control_client_report("/nonexistent", 0, error));
	assert_string_equal(error, "no urxed serves /nonexistent");
}

static void malformed_request_is_refused(void **state)
{
	static const struct control_request wrong_version = {CONTROL_VERSION + 1, CONTROL_SHOW};
	static const struct control_request wrong_type = {CONTROL_VERSION, 77};
	static const char too_long[sizeof(struct control_request) + 1];
	const struct {
		const void *bytes;
		uint32_t len;
	} requests[] = {{&wrong_version, sizeof(wrong_version)},
			{&wrong_type, sizeof(wrong_type)},
			{too_long, sizeof(too_long)},
			{too_long, 1}};
	struct control_reply reply;
	struct unix_packet_extras came;
	size_t i;
	int fd;

	(void)state;
	for (i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		fd = connect_to_it();
		assert_int_equal(unix_packet_send(fd, requests[i].bytes, requests[i].len, NULL, 0),
				 0);
		assert_int_equal(unix_packet_recv(fd, &reply, sizeof(reply), &came), sizeof(reply));
		assert_int_equal(reply.status, -EPROTO);
		assert_int_equal(came.fds[0], -1);
		assert_int_equal(unix_packet_recv(fd, &reply, sizeof(reply), &came), 0);
		close(fd);
	}
}

static json_int_t number(const json_t *report, const char *list, size_t index, const char *key)
{
	return json_integer_value(
		json_object_get(json_array_get(json_object_get(report, list), index), key));
}

/*
 * Three processes have leases: one does not answer; one answers, and has two blocks; one was not
 * asked. All are in PID namespaces of their own.
 */
static void states_of_processes_are_added_to_the_report(void **state)
{
	char leases[512], error[CONTROL_CLIENT_ERROR] = "";
	json_t *report, *list;

	(void)state;
	snprintf(leases, sizeof(leases),
		 "{\"counters\": [], \"leases\": ["
		 "{\"port\": %d, \"process\": \"he\", \"pid\": 0, \"asked\": true},"
		 "{\"port\": %d, \"process\": \"me\", \"pid\": 0, \"asked\": true,"
		 " \"qpn_first\": 16, \"qpn_count\": 2},"
		 "{\"port\": 6, \"process\": \"you\", \"pid\": 0, \"asked\": false},"
		 "{\"port\": %d, \"process\": \"me\", \"pid\": 0, \"asked\": true,"
		 " \"qpn_first\": 18, \"qpn_count\": 2}]}",
		 FLOODED, ANSWERED, ANSWERED);
	text = leases;
	process_state = "{\"qps\": [{\"qpn\": 17}, {\"qpn\": 18}], \"mrs\": [],"
			" \"counters\": {\"timeout\": 3, \"odd\": 1}}";
	report = control_client_report(top, WAIT_MS, error);
	process_state = NULL;
	assert_non_null(report);
	assert_int_equal(json_array_size(json_object_get(report, "qps")), 2);
	assert_int_equal(number(report, "qps", 1, "qpn"), 18);
	assert_string_equal(json_string_value(json_object_get(
				    json_array_get(json_object_get(report, "qps"), 1), "process")),
			    "me");
	assert_int_equal(number(report, "counters", 0, "value"), 3);
	assert_int_equal(json_array_size(json_object_get(report, "counters")), 1);
	list = json_object_get(report, "leases");
	assert_true(json_is_false(json_object_get(json_array_get(list, 0), "answered")));
	assert_true(json_is_true(json_object_get(json_array_get(list, 1), "answered")));
	assert_true(json_is_false(json_object_get(json_array_get(list, 2), "answered")));
	assert_true(json_is_true(json_object_get(json_array_get(list, 3), "answered")));
	assert_int_equal(number(report, "leases", 1, "qps"), 1);
	assert_int_equal(number(report, "leases", 3, "qps"), 1);
	json_decref(report);
}

/* A system call that waits for the daemon fails with EINTR also after SIGSTOP and SIGCONT, because
 * the socket has a timeout (signal(7)). */
static void signal_does_not_end_the_request(void **state)
{
	char error[CONTROL_CLIENT_ERROR] = "";
	json_t *report;

	(void)state;
	text = "{\"a\": 1}";
	process_state = "{}";
	interrupts = true;
	report = control_client_report(top, WAIT_MS, error);
	interrupts = false;
	process_state = NULL;
	assert_string_equal(error, "");
	assert_non_null(report);
	json_decref(report);
}

/* Accepts two connections, and closes them. */
static void *accept_after_signal(void *listener)
{
	struct pollfd pfd = {*(int *)listener, POLLIN, 0};
	int i, fd;

	interrupt_client();
	for (i = 0; i < 2 && poll(&pfd, 1, PATIENCE_MS) == 1; i++) {
		fd = accept(pfd.fd, NULL, NULL);
		assert_true(fd >= 0);
		close(fd);
	}
	return NULL;
}

/* The daemon has not accepted an earlier connection yet, and its backlog has room for one. */
static void signal_does_not_end_the_connection(void **state)
{
	char dir[] = "/tmp/test-control-full-XXXXXX", error[CONTROL_CLIENT_ERROR] = "";
	struct sockaddr_un address;
	pthread_t daemon;
	int listener, first;

	(void)state;
	assert_non_null(mkdtemp(dir));
	listener = unix_packet_listen(dir, CONTROL_SOCKET_NAME, 0);
	first = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_true(listener >= 0 && first >= 0);
	assert_int_equal(unix_packet_address(&address, dir, CONTROL_SOCKET_NAME), 0);
	assert_int_equal(connect(first, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(pthread_create(&daemon, NULL, accept_after_signal, &listener), 0);
	assert_null(control_client_report(dir, 0, error));
	assert_null(strstr(error, strerror(EINTR)));
	assert_int_equal(pthread_join(daemon, NULL), 0);
	close(first);
	close(listener);
	assert_int_equal(unlink(address.sun_path), 0);
	assert_int_equal(rmdir(dir), 0);
}

static void *answer_after_signal(void *socket)
{
	const struct vnic_attach_state good = {.status = 0};

	interrupt_client();
	answer(*(int *)socket, &good, sizeof(good), process_state);
	return NULL;
}

static void signal_does_not_end_the_wait_for_processes(void **state)
{
	struct process_sockets sockets = {.n = 1, .ports = {ANSWERED}};
	json_t *report = json_loads("{\"counters\": [], \"leases\": [{\"port\": 5, \"asked\": true,"
				    " \"qpn_first\": 16, \"qpn_count\": 2}]}",
				    0, NULL);
	pthread_t process;
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	sockets.fds[0] = ends[0];
	process_state = "{\"qps\": [{\"qpn\": 17}]}";
	assert_int_equal(pthread_create(&process, NULL, answer_after_signal, &ends[1]), 0);
	process_states_collect(report, &sockets, PATIENCE_MS);
	assert_int_equal(pthread_join(process, NULL), 0);
	process_state = NULL;
	assert_int_equal(json_array_size(json_object_get(report, "qps")), 1);
	json_decref(report);
	close(ends[0]);
	close(ends[1]);
}

/* In a process that may have few more descriptors. Returns whether the report has two QPs. */
static bool report_with_few_descriptors(void)
{
	char error[CONTROL_CLIENT_ERROR];
	struct rlimit few;
	json_t *report;
	int next = dup(0);

	few.rlim_cur = few.rlim_max = (rlim_t)next + OTHERS;
	close(next);
	if (ASKED <= few.rlim_max || setrlimit(RLIMIT_NOFILE, &few))
		return false;
	report = control_client_report(top, WAIT_MS, error);
	return report && json_array_size(json_object_get(report, "qps")) == 2;
}

/* Without a descriptor for each process, the answers of some are missing. */
static void report_arrives_with_few_descriptors(void **state)
{
	char leases[64 * (ASKED + 2)];
	int status, len;
	uint32_t i;
	pid_t pid;

	(void)state;
	len = sprintf(leases,
		      "{\"counters\": [], \"leases\": ["
		      "{\"port\": %d, \"pid\": 1, \"asked\": true, \"qpn_count\": 2}",
		      ANSWERED);
	for (i = 0; i < ASKED; i++)
		len += sprintf(leases + len, ",{\"port\": %u, \"pid\": 1, \"asked\": true}",
			       FIRST_OTHER + i);
	strcpy(leases + len, "]}");
	text = leases;
	process_state = "{\"qps\": [{\"qpn\": 17}, {\"qpn\": 18}]}";
	pid = fork();
	if (!pid)
		_exit(!report_with_few_descriptors());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	process_state = NULL;
	assert_int_equal(status, 0);
}

/* The process got its second block while it was asked. */
static void queue_pairs_of_a_new_block_are_shown(void **state)
{
	json_t *report = json_loads("{\"counters\": [], \"leases\": [{\"port\": 5, \"asked\": true,"
				    " \"qpn_first\": 16, \"qpn_count\": 1}]}",
				    0, NULL);
	const char *answer_text = "{\"qps\": [{\"qpn\": 16}, {\"qpn\": 32}]}";

	(void)state;
	assert_non_null(report);
	process_states_add(report, answer_text, strlen(answer_text));
	assert_int_equal(json_array_size(json_object_get(report, "qps")), 2);
	json_decref(report);
}

/* An HCA chooses numbers that are in no lease; the process adds them. */
static void numbers_of_an_hca_count(void **state)
{
	json_t *report = json_loads("{\"counters\": [], \"leases\": [{\"port\": 5, \"asked\": true,"
				    " \"qpn_first\": 16, \"qpn_count\": 1, \"added_qpns\": 2}]}",
				    0, NULL);
	const char *answer_text = "{\"qps\": [{\"qpn\": 16}, {\"qpn\": 7}, {\"qpn\": 70000}]}";

	(void)state;
	assert_non_null(report);
	process_states_add(report, answer_text, strlen(answer_text));
	assert_int_equal(json_array_size(json_object_get(report, "qps")), 3);
	json_decref(report);
}

/* The document counts as the process's answer, whatever follows. */
static void malformed_state_is_refused(void **state)
{
	char leases[512], error[CONTROL_CLIENT_ERROR] = "";
	json_t *report, *lease;

	(void)state;
	snprintf(leases, sizeof(leases),
		 "{\"counters\": [], \"leases\": ["
		 "{\"port\": %d, \"process\": \"me\", \"pid\": 1, \"asked\": true,"
		 " \"qpn_first\": 16, \"qpn_count\": 2}]}",
		 ANSWERED);
	text = leases;
	process_state = "{\"qps\": [{\"qpn\": \"\033[2J\"}]}";
	report = control_client_report(top, WAIT_MS, error);
	process_state = NULL;
	assert_non_null(report);
	lease = json_array_get(json_object_get(report, "leases"), 0);
	assert_true(json_is_false(json_object_get(lease, "answered")));
	assert_non_null(json_string_value(json_object_get(lease, "refused")));
	assert_int_equal(json_array_size(json_object_get(report, "qps")), 0);
	json_decref(report);
}

/* The capture survives more than CONTROL_PEERS other connections, until its own is closed. */
static void capture_ends_with_its_connection(void **state)
{
	char error[CONTROL_CLIENT_ERROR] = "";
	int fd, ring, i;

	(void)state;
	assert_int_equal(control_client_capture(top, "bad", false, &ring, error), -1);
	assert_non_null(strstr(error, "as many captures"));
	fd = control_client_capture(top, "good", false, &ring, error);
	assert_true(fd >= 0 && ring >= 0);
	for (i = 0; i < 2 * CONTROL_PEERS; i++)
		assert_answers("{\"a\": 1}");
	assert_true(atomic_load(&capturing) >= 0);
	close(fd);
	close(ring);
	while (atomic_load(&capturing) >= 0)
		assert_answers("{\"a\": 1}");
}

static void only_sealed_memory_is_read(void **state)
{
	int fd = memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING), ends[2];
	size_t len;
	char *got;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(sealed_text_read(fd, UINT64_MAX, &got, &len), -EPERM);
	assert_int_equal(ftruncate(fd, SEALED_TEXT_MAX + 1), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
	assert_int_equal(sealed_text_read(fd, UINT64_MAX, &got, &len), -EFBIG);
	close(fd);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(sealed_text_read(ends[0], UINT64_MAX, &got, &len), -EPERM);
	close(ends[0]);
	close(ends[1]);
	fd = sealed_text_make("four", 4);
	assert_int_equal(sealed_text_read(fd, 3, &got, &len), -EFBIG);
	close(fd);
	fd = sealed_text_make("", 0);
	assert_int_equal(sealed_text_read(fd, 0, &got, &len), 0);
	assert_string_equal(got, "");
	free(got);
	close(fd);
}

/* A connection that cannot be accepted without descriptors wakes the daemon again after a pause. */
static void connection_without_descriptors_is_accepted_later(void **state)
{
	char dir[] = "/tmp/test-control-XXXXXX";
	struct pollfd pfd = {.events = POLLIN};
	struct sockaddr_un address;
	struct rlimit limit;
	struct control c;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(control_open(&c, dir, &ops, &c), 0);
	assert_int_equal(unix_packet_address(&address, dir, CONTROL_SOCKET_NAME), 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	pfd.fd = c.epoll_fd;
	assert_int_equal(poll(&pfd, 1, 0), 1);
	limit = descriptor_limit_reach();
	control_event(&c, 1000);
	descriptor_limit_restore(&limit);
	assert_int_equal(poll(&pfd, 1, 0), 0);
	assert_int_equal(control_tick(&c, 1000), 1000 + 100000000);
	assert_int_equal(control_tick(&c, 1000 + 100000000), UINT64_MAX);
	control_event(&c, 1000 + 100000000);
	assert_true(c.peers[0].fd >= 0);
	close(fd);
	control_close(&c, dir);
	assert_int_equal(rmdir(dir), 0);
}

/* A daemon without a thread, whose time the test sets. */
struct quiet_daemon {
	char dir[32];
	struct control control;
	int fds[CONTROL_PEERS + 1];
};

/* Makes n connections and accepts them, each at the time of its index in ns. */
static void open_quiet_daemon(struct quiet_daemon *d, int n)
{
	struct sockaddr_un address;

	strcpy(d->dir, "/tmp/test-control-XXXXXX");
	assert_non_null(mkdtemp(d->dir));
	assert_int_equal(control_open(&d->control, d->dir, &ops, &control), 0);
	assert_int_equal(unix_packet_address(&address, d->dir, CONTROL_SOCKET_NAME), 0);
	for (int i = 0; i < n; i++) {
		d->fds[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		assert_int_equal(
			connect(d->fds[i], (const struct sockaddr *)&address, sizeof(address)), 0);
		control_event(&d->control, (uint64_t)i);
	}
}

static void close_quiet_daemon(struct quiet_daemon *d, int n)
{
	for (int i = 0; i < n; i++)
		close(d->fds[i]);
	control_close(&d->control, d->dir);
	assert_int_equal(rmdir(d->dir), 0);
}

static void send_request(int fd)
{
	static const struct control_request request = {CONTROL_VERSION, CONTROL_SHOW};

	assert_int_equal(unix_packet_send(fd, &request, sizeof(request), NULL, 0), 0);
}

static void expect_answer(int fd)
{
	struct unix_packet_extras came;
	struct control_reply reply;

	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(unix_packet_recv(fd, &reply, sizeof(reply), &came), sizeof(reply));
	unix_packet_close_fds(&came);
	assert_int_equal(reply.status, 0);
}

static bool is_readable(int fd)
{
	struct pollfd pfd = {fd, POLLIN, 0};

	return poll(&pfd, 1, 0) == 1;
}

/* Else they would keep their descriptors, which programs need. */
static void few_silent_clients_are_closed_too(void **state)
{
	struct quiet_daemon d;

	(void)state;
	text = "{}";
	open_quiet_daemon(&d, 3);
	/* The daemon has not looked yet, for lack of processor time. */
	send_request(d.fds[2]);
	assert_int_equal(control_tick(&d.control, CONTROL_SILENT_NS + 2), UINT64_MAX);
	assert_true(is_readable(d.fds[0]));
	assert_true(is_readable(d.fds[1]));
	control_event(&d.control, CONTROL_SILENT_NS + 2);
	expect_answer(d.fds[2]);
	close_quiet_daemon(&d, 3);
}

/* A slow client, as the first of many that a loaded machine starts at once. */
static void late_client_is_answered_after_many_others(void **state)
{
	const int n = CONTROL_PEERS + 1;
	struct quiet_daemon d;

	(void)state;
	text = "{}";
	open_quiet_daemon(&d, n);
	/* The last connection waits for a place, and does not wake the daemon meanwhile. */
	assert_false(is_readable(d.control.epoll_fd));
	send_request(d.fds[0]);
	control_event(&d.control, 100);
	expect_answer(d.fds[0]);
	send_request(d.fds[n - 1]);
	control_event(&d.control, 101);
	control_event(&d.control, 102);
	expect_answer(d.fds[n - 1]);
	close_quiet_daemon(&d, n);
}

static void silent_clients_block_no_others(void **state)
{
	const int n = CONTROL_PEERS + 1;
	struct quiet_daemon d;

	(void)state;
	text = "{}";
	open_quiet_daemon(&d, n);
	send_request(d.fds[n - 1]);
	assert_int_equal(control_tick(&d.control, 100), CONTROL_SILENT_NS);
	assert_int_equal(control_tick(&d.control, CONTROL_SILENT_NS), CONTROL_SILENT_NS + 1);
	assert_true(is_readable(d.control.epoll_fd));
	control_event(&d.control, CONTROL_SILENT_NS);
	control_event(&d.control, CONTROL_SILENT_NS);
	expect_answer(d.fds[n - 1]);
	/* The oldest was closed, the next one not. */
	assert_true(is_readable(d.fds[0]));
	assert_false(is_readable(d.fds[1]));
	close_quiet_daemon(&d, n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connection_without_descriptors_is_accepted_later),
		cmocka_unit_test(report_arrives_complete),
		cmocka_unit_test(failed_report_has_an_error_text),
		cmocka_unit_test(states_of_processes_are_added_to_the_report),
		cmocka_unit_test(signal_does_not_end_the_connection),
		cmocka_unit_test(signal_does_not_end_the_request),
		cmocka_unit_test(signal_does_not_end_the_wait_for_processes),
		cmocka_unit_test(report_arrives_with_few_descriptors),
		cmocka_unit_test(queue_pairs_of_a_new_block_are_shown),
		cmocka_unit_test(numbers_of_an_hca_count),
		cmocka_unit_test(malformed_state_is_refused),
		cmocka_unit_test(capture_ends_with_its_connection),
		cmocka_unit_test(malformed_request_is_refused),
		cmocka_unit_test(silent_clients_block_no_others),
		cmocka_unit_test(few_silent_clients_are_closed_too),
		cmocka_unit_test(late_client_is_answered_after_many_others),
		cmocka_unit_test(only_sealed_memory_is_read),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
