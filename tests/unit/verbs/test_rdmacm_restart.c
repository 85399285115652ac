/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Devices of rdma_cm, while this test ends the daemon and starts the next. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <cm/attach_protocol.h>
#include <rdma/rdma_user_cm.h>

#include "rdmacm/ids.h"
#include "rdmacm/rdmacm.h"
#include "require.h"
#include "send_fds.h"

#define NUMBER 7 /* of the ID */
#define FROM   1 /* tokens of the devices */
#define TO     2
#define LIMIT  64 /* of descriptors */

static char dir[] = "/tmp/urxe-test-rdmacm-XXXXXX";
static int listener;

/* --- The daemon */

/* Accepts a connection of the program, and welcomes the device. */
static int welcome(uint64_t token)
{
	const struct cm_attach_welcome w = {.token = token};
	int socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC), ends[CM_ATTACH_FDS];
	struct cm_attach_hello hello;

	require(recv(socket, &hello, sizeof(hello), 0) == sizeof(hello));
	require(!hello.token || hello.token == token);
	require(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
	require(send_fds(socket, &w, sizeof(w), ends, CM_ATTACH_FDS) == sizeof(w));
	for (int i = 0; i < CM_ATTACH_FDS; i++)
		close(ends[i]);
	return socket;
}

/* Replies to the next command, if the program has not closed the device. */
static void reply(int socket, uint32_t expected, bool again, int status)
{
	struct {
		struct cm_attach_reply reply;
		struct rdma_ucm_migrate_resp resp;
	} __attribute__((packed)) answer = {.reply = {.status = status, .out = sizeof(answer.resp)},
					    .resp = {.events_reported = 3}};
	struct {
		struct cm_attach_command command;
		uint8_t in[CM_ATTACH_BYTES];
	} packet;

	if (recv(socket, &packet, sizeof(packet), 0) <= 0)
		return;
	require(packet.command.command == expected && packet.command.again == again);
	require(send(socket, &answer, sizeof(answer), MSG_NOSIGNAL) == sizeof(answer));
}

/* The first daemon ends between the two commands of a migration. */
static void *serve(void *arg)
{
	int from = welcome(FROM), to = welcome(TO);

	reply(from, RDMA_USER_CM_CMD_GET_EVENT, false, 0);
	close(from);
	close(to);
	to = welcome(TO);
	reply(to, RDMA_USER_CM_CMD_GET_EVENT, false, 0);
	/* The next daemon does not find a device that the program has not claimed yet. */
	reply(to, RDMA_USER_CM_CMD_MIGRATE_ID, true, -EINVAL);
	from = welcome(FROM);
	reply(from, RDMA_USER_CM_CMD_GET_EVENT, false, 0);
	reply(from, RDMA_USER_CM_CMD_GET_EVENT, true, 0);
	reply(to, RDMA_USER_CM_CMD_MIGRATE_ID, false, 0);
	close(from);
	close(to);
	return arg;
}

static int set_up(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	(void)state;
	require(mkdtemp(dir) && !setenv("URXE_DIR", dir, 1));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/" CM_ATTACH_SOCKET_NAME, dir);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	require(!bind(listener, (const struct sockaddr *)&address, sizeof(address)));
	return listen(listener, 8);
}

static int tear_down(void **state)
{
	char path[sizeof(dir) + sizeof(CM_ATTACH_SOCKET_NAME)];

	(void)state;
	close(listener);
	snprintf(path, sizeof(path), "%s/" CM_ATTACH_SOCKET_NAME, dir);
	return unlink(path) || rmdir(dir);
}

/* --- The program */

static void close_device(int fd)
{
	fd_remove(fd);
	close(fd);
}

static void a_daemon_may_be_replaced_within_a_migration(void **state)
{
	struct rdma_ucm_migrate_resp resp = {0};
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		struct rdma_ucm_migrate_id migrate;
	} c = {.hdr = {.cmd = RDMA_USER_CM_CMD_MIGRATE_ID,
		       .in = sizeof(c.migrate),
		       .out = sizeof(resp)},
	       .migrate = {.response = (uintptr_t)&resp, .id = NUMBER}};
	pthread_t server;
	int from, to;

	(void)state;
	assert_int_equal(pthread_create(&server, NULL, serve, NULL), 0);
	from = rdmacm_open(O_CLOEXEC);
	to = rdmacm_open(O_CLOEXEC);
	assert_true(from >= 0 && to >= 0);
	c.migrate.fd = (uint32_t)from;
	assert_int_equal(rdmacm_write(rdmacm_lookup(to), to, &c, sizeof(c)), sizeof(c));
	assert_int_equal(resp.events_reported, 3);
	/* The program has guessed the number: it has not fetched the event of the ID. */
	assert_non_null(rdmacm_id_find(rdmacm_lookup(to), NUMBER));
	close_device(to);
	close_device(from);
	assert_int_equal(pthread_join(server, NULL), 0);
}

/* `n` daemons, each of which ends when it gets a command; the next one replies. */
static void end_at_command(int socket, int n)
{
	struct cm_attach_command command;

	for (int i = 0; i < n; i++) {
		require(recv(socket, &command, sizeof(command), 0) > 0);
		close(socket);
		socket = welcome(TO);
		reply(socket, RDMA_USER_CM_CMD_GET_EVENT, false, 0);
	}
	reply(socket, RDMA_USER_CM_CMD_CREATE_ID, true, 0);
	require(!recv(socket, &command, sizeof(command), 0));
}

static void serve_twice(void)
{
	end_at_command(welcome(TO), 2);
}

/* Two more devices, until the program closes them. */
static void serve_others(void)
{
	int socket = welcome(TO), other;
	char byte;

	for (int i = 0; i < 2; i++) {
		other = welcome(FROM);
		require(recv(other, &byte, 1, 0) <= 0);
		close(other);
	}
	end_at_command(socket, 1);
}

static pid_t start_daemon(void (*serve_all)(void))
{
	pid_t daemon = fork();

	if (!daemon) {
		alarm(20);
		serve_all();
		_exit(0);
	}
	return daemon;
}

static void await_daemon(pid_t daemon)
{
	int status;

	assert_int_equal(waitpid(daemon, &status, 0), daemon);
	assert_int_equal(status, 0);
}

static struct rlimit lower_limit(void)
{
	struct rlimit limit, small;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	small = (struct rlimit){LIMIT, limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &small), 0);
	return limit;
}

/* Returns how many. */
static int take_all_numbers(int taken[LIMIT])
{
	int n = 0;

	while ((taken[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		n++;
	return n;
}

static void create_id(int fd)
{
	struct rdma_ucm_create_id_resp resp = {0};
	const struct {
		struct rdma_ucm_cmd_hdr hdr;
		struct rdma_ucm_create_id create;
	} c = {.hdr = {.cmd = RDMA_USER_CM_CMD_CREATE_ID,
		       .in = sizeof(c.create),
		       .out = sizeof(resp)},
	       .create = {.response = (uintptr_t)&resp}};

	assert_int_equal(rdmacm_write(rdmacm_lookup(fd), fd, &c, sizeof(c)), sizeof(c));
}

static void a_process_at_its_limit_of_descriptors_finds_the_next_daemon(void **state)
{
	pid_t daemon = start_daemon(serve_twice);
	struct rlimit limit = lower_limit();
	int fd, taken[LIMIT], n;

	(void)state;
	fd = rdmacm_open(O_CLOEXEC);
	assert_true(fd >= 0);
	n = take_all_numbers(taken);
	create_id(fd);
	close_device(fd);
	while (n--)
		close(taken[n]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	await_daemon(daemon);
}

/* The spare descriptors are for claims: the first device's daemon ends afterwards. */
static void a_new_device_takes_no_spare_descriptors(void **state)
{
	pid_t daemon = start_daemon(serve_others);
	struct rlimit limit = lower_limit();
	int fd, other, taken[LIMIT], before, n;

	(void)state;
	fd = rdmacm_open(O_CLOEXEC);
	assert_true(fd >= 0);
	before = n = take_all_numbers(taken);
	while (n)
		close(taken[--n]);
	other = rdmacm_open(O_CLOEXEC);
	assert_true(other >= 0);
	n = take_all_numbers(taken);
	close_device(other);
	/* One number less than the device has had. */
	assert_true(n < before);
	taken[n] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(taken[n++] >= 0);
	assert_int_equal(rdmacm_open(O_CLOEXEC), -EMFILE);
	n += take_all_numbers(taken + n);
	create_id(fd);
	close_device(fd);
	while (n--)
		close(taken[n]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	await_daemon(daemon);
}

/* --- The kernel's rdma_cm, which comes after the program has opened the device */

static int kernel = -1; /* the other end of the kernel's descriptor */
static bool kernel_has_come;

int __wrap_rdmacm_kernel_open(void);
int __wrap_rdmacm_kernel_open(void)
{
	int ends[2];

	if (!kernel_has_come)
		return -1;
	require(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
	kernel = ends[1];
	return ends[0];
}

static void *serve_commands(void *arg)
{
	struct {
		struct cm_attach_reply reply;
		struct rdma_ucm_create_id_resp resp;
	} __attribute__((packed))
	answer = {.reply = {.out = sizeof(answer.resp)}, .resp = {.id = NUMBER}};
	int socket = welcome(FROM);
	struct cm_attach_command command;

	while (recv(socket, &command, sizeof(command), 0) > 0)
		require(send(socket, &answer, sizeof(answer), MSG_NOSIGNAL) == sizeof(answer));
	close(socket);
	return arg;
}

static void *get_event(void *fd)
{
	struct rdma_ucm_event_resp event;
	const struct {
		struct rdma_ucm_cmd_hdr hdr;
		struct rdma_ucm_get_event get;
	} c = {.hdr = {.cmd = RDMA_USER_CM_CMD_GET_EVENT,
		       .in = sizeof(c.get),
		       .out = sizeof(event)},
	       .get = {.response = (uintptr_t)&event}};

	require(rdmacm_write(rdmacm_lookup(*(int *)fd), *(int *)fd, &c, sizeof(c)) == sizeof(c));
	return NULL;
}

/* Whether a thread waits for the daemon's events only. */
static bool is_awaited(struct rdmacm_file *file)
{
	bool awaited;

	pthread_mutex_lock(&file->lock);
	awaited = file->n_waiting;
	pthread_mutex_unlock(&file->lock);
	return awaited;
}

/* The thread fetches the kernel's event, as which the socket accepts the command. */
static void a_waiting_thread_gets_events_of_a_kernel_that_comes_late(void **state)
{
	const struct {
		struct rdma_ucm_cmd_hdr hdr;
		struct rdma_ucm_bind bind;
	} c = {.hdr = {.cmd = RDMA_USER_CM_CMD_BIND, .in = sizeof(c.bind)},
	       .bind = {.id = NUMBER, .addr_size = 16, .addr.ss_family = AF_INET}};
	pthread_t server, waiter;
	int fd;

	(void)state;
	assert_int_equal(pthread_create(&server, NULL, serve_commands, NULL), 0);
	fd = rdmacm_open(O_CLOEXEC);
	assert_true(fd >= 0);
	create_id(fd);
	assert_int_equal(pthread_create(&waiter, NULL, get_event, &fd), 0);
	while (!is_awaited(rdmacm_lookup(fd)))
		usleep(1000);
	kernel_has_come = true;
	assert_int_equal(rdmacm_write(rdmacm_lookup(fd), fd, &c, sizeof(c)), sizeof(c));
	assert_int_equal(pthread_join(waiter, NULL), 0);
	close_device(fd);
	close(kernel);
	assert_int_equal(pthread_join(server, NULL), 0);
	kernel_has_come = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_daemon_may_be_replaced_within_a_migration),
		cmocka_unit_test(a_process_at_its_limit_of_descriptors_finds_the_next_daemon),
		cmocka_unit_test(a_new_device_takes_no_spare_descriptors),
		cmocka_unit_test(a_waiting_thread_gets_events_of_a_kernel_that_comes_late),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
