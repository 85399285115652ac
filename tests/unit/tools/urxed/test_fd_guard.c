/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sockets with descriptors in their queues are closed, and inboxes checked, by another process. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <vnic/attach_protocol.h>
#include <vnic/inbox.h>
#include <vnic/peer_socket.h>

#include "send_fds.h"
#include "urxed/privilege/fd_guard.h"
#include "vnic_loop.h"

#define MTU         1500
#define PATIENCE_MS 20000

static int setup(void **state)
{
	(void)state;
	/* As on a kernel that cannot refuse descriptors. */
	vnic_peer_refuse_fds(-1);
	return fd_guard_start();
}

static int teardown(void **state)
{
	(void)state;
	fd_guard_stop();
	return 0;
}

static bool comes(int fd, short events)
{
	struct pollfd pfd = {.fd = fd, .events = events};

	return poll(&pfd, 1, PATIENCE_MS) == 1;
}

/* A socket whose queue has the last copy of a pipe's write end; returns the socket. */
static int make_loaded_socket(int *reader, int *program)
{
	int ends[2], pipe_ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(pipe2(pipe_ends, O_CLOEXEC), 0);
	assert_int_equal(send_fds(ends[1], "?", 1, &pipe_ends[1], 1), 1);
	close(pipe_ends[1]);
	*reader = pipe_ends[0];
	*program = ends[1];
	return ends[0];
}

static void check_loaded_socket_is_closed(void)
{
	const uint64_t before = fd_guard_count();
	int reader, program, socket = make_loaded_socket(&reader, &program);

	fd_guard_close(socket);
	assert_int_equal(fd_guard_count(), before + 1);
	/* The descriptor number is free, and the program sees the end of the connection. */
	assert_int_equal(fcntl(socket, F_GETFD), -1);
	assert_true(comes(program, POLLIN));
	/* The descriptor in the queue is closed too. */
	assert_true(comes(reader, 0));
	close(program);
	close(reader);
}

static void loaded_socket_is_closed(void **state)
{
	(void)state;
	for (int i = 0; i < 50; i++)
		check_loaded_socket_is_closed();
}

/* The daemon gets no processor for a while between its request to the helper and close. */
static struct {
	int socket; /* whose close takes so long; -1: none */
	int reader; /* the pipe whose other end is in the socket's queue */
	bool was_last;
} late = {.socket = -1};

int __real_close(int fd);
int __wrap_close(int fd);

int __wrap_close(int fd)
{
	struct pollfd pfd = {.fd = late.reader};
	int rc;

	if (fd != late.socket)
		return __real_close(fd);
	usleep(200000);
	rc = __real_close(fd);
	late.was_last = poll(&pfd, 1, 0) == 1;
	return rc;
}

/* The last close of a descriptor in the queue may wait: it must be the helper's. */
static void daemon_never_closes_the_last_copy(void **state)
{
	int reader, program, socket = make_loaded_socket(&reader, &program);

	(void)state;
	late.socket = socket;
	late.reader = reader;
	fd_guard_close(socket);
	late.socket = -1;
	assert_false(late.was_last);
	assert_true(comes(program, POLLIN));
	assert_true(comes(reader, 0));
	close(program);
	close(reader);
}

static void empty_socket_needs_no_helper(void **state)
{
	const uint64_t before = fd_guard_count();
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(send(ends[1], "text", 4, 0), 4);
	fd_guard_close(ends[0]);
	assert_int_equal(fd_guard_count(), before);
	assert_true(comes(ends[1], POLLIN));
	close(ends[1]);
}

/* Of this process, the helper is the only child. 0: the list is empty. */
static pid_t read_child(void)
{
	char path[64];
	FILE *file;
	int pid = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	file = fopen(path, "re");
	assert_non_null(file);
	if (fscanf(file, "%d", &pid) != 1)
		pid = 0;
	fclose(file);
	return pid;
}

/* The kernel may leave processes out of the list while others come and go (proc(5)). */
static pid_t helper_pid(void)
{
	pid_t pid = read_child();

	for (int waited_ms = 0; !pid && waited_ms < PATIENCE_MS; waited_ms += 10) {
		usleep(10000);
		pid = read_child();
	}
	assert_int_not_equal(pid, 0);
	return pid;
}

static void check_another_helper_is_started(void)
{
	const pid_t first = helper_pid();

	/* A helper is started once in a second at most. */
	usleep(1100000);
	assert_int_equal(kill(first, SIGKILL), 0);
	assert_int_equal(waitpid(first, NULL, 0), first);
	check_loaded_socket_is_closed();
	assert_int_not_equal(helper_pid(), first);
}

static void another_helper_is_started(void **state)
{
	(void)state;
	check_another_helper_is_started();
}

static int listen_on(struct sockaddr_un *address)
{
	socklen_t len = sizeof(*address);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	/* The kernel chooses an abstract name. */
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	assert_int_equal(bind(fd, (struct sockaddr *)address, sizeof(sa_family_t)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)address, &len), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

/* A connection that the daemon has not accepted has a queue as well. */
static void backlog_is_closed(void **state)
{
	const uint64_t before = fd_guard_count();
	struct sockaddr_un address;
	int listener = listen_on(&address), programs[3], pipe_ends[2];

	(void)state;
	assert_int_equal(pipe2(pipe_ends, O_CLOEXEC), 0);
	for (int i = 0; i < 3; i++) {
		programs[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		assert_int_equal(connect(programs[i], (struct sockaddr *)&address,
					 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 6)),
				 0);
	}
	assert_int_equal(send_fds(programs[1], "?", 1, &pipe_ends[1], 1), 1);
	close(pipe_ends[1]);
	fd_guard_close_listener(listener);
	assert_int_equal(fd_guard_count(), before + 1);
	assert_true(comes(pipe_ends[0], 0));
	for (int i = 0; i < 3; i++) {
		assert_true(comes(programs[i], POLLIN));
		close(programs[i]);
	}
	close(pipe_ends[0]);
}

/* --- Inboxes */

/* Sends descriptors to be checked; returns the answer's status. */
static int send_inbox(uint64_t token, const int *fds, uint32_t n)
{
	struct vnic_attach_inbox message = {.type = VNIC_ATTACH_INBOX, .exists = 1};
	int socket = fd_guard_check_inbox(token, getuid());

	assert_true(socket >= 0);
	assert_int_equal(send_fds(socket, &message, sizeof(message), fds, n), sizeof(message));
	assert_int_equal(recv(socket, &message, sizeof(message), 0), sizeof(message));
	close(socket);
	return message.status;
}

static void inbox_is_passed_on(void **state)
{
	int fds[VNIC_INBOX_FDS], got[VNIC_INBOX_FDS];
	struct vnic_inbox_broker *broker;
	struct vnic_inbox *inbox;
	uint64_t token = 0;

	(void)state;
	assert_int_equal(vnic_inbox_create(MTU, &inbox), 0);
	vnic_inbox_fds(inbox, fds);
	assert_int_equal(send_inbox(0x77, fds, VNIC_INBOX_FDS), 0);
	assert_true(comes(fd_guard_fd(), POLLIN));
	assert_true(fd_guard_next_inbox(&token, got));
	assert_int_equal(token, 0x77);
	assert_int_equal(vnic_inbox_broker_open(got, MTU, &broker), 0);
	vnic_inbox_broker_close(broker);
	vnic_inbox_destroy(inbox);
	assert_false(fd_guard_next_inbox(&token, got));
}

/* Leaves room for n more descriptors; returns the limit that was in force. */
static struct rlimit leave_fds(uint32_t n)
{
	struct rlimit before, few;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){0, before.rlim_max};
	for (uint32_t left = 0; left < n || fcntl((int)few.rlim_cur, F_GETFD) >= 0; few.rlim_cur++)
		left += fcntl((int)few.rlim_cur, F_GETFD) < 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	return before;
}

/* The daemon may have no room for all descriptors of an inbox: it keeps none of them. */
static void inbox_without_all_descriptors_is_closed(void **state)
{
	int fds[VNIC_INBOX_FDS], got[VNIC_INBOX_FDS];
	struct vnic_inbox *inbox;
	struct rlimit limit;
	uint64_t token;

	(void)state;
	assert_int_equal(vnic_inbox_create(MTU, &inbox), 0);
	vnic_inbox_fds(inbox, fds);
	for (uint32_t n = 0; n <= VNIC_INBOX_FDS; n++) {
		assert_int_equal(send_inbox(n, fds, VNIC_INBOX_FDS), 0);
		assert_true(comes(fd_guard_fd(), POLLIN));
		limit = leave_fds(n);
		assert_int_equal(fd_guard_next_inbox(&token, got), n == VNIC_INBOX_FDS);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		for (int i = 0; i < VNIC_INBOX_FDS; i++)
			assert_true(n == VNIC_INBOX_FDS ? !close(got[i])
							: fcntl(got[i], F_GETFD) < 0);
	}
	vnic_inbox_destroy(inbox);
}

static void other_descriptors_are_refused(void **state)
{
	int fds[VNIC_INBOX_FDS], got[VNIC_INBOX_FDS], pipe_ends[2];
	struct vnic_inbox *inbox;
	uint64_t token;

	(void)state;
	assert_int_equal(pipe2(pipe_ends, O_CLOEXEC), 0);
	assert_int_equal(vnic_inbox_create(MTU, &inbox), 0);
	for (int i = 0; i < VNIC_INBOX_FDS; i++) {
		vnic_inbox_fds(inbox, fds);
		fds[i] = pipe_ends[1];
		assert_true(send_inbox(1, fds, VNIC_INBOX_FDS) < 0);
	}
	vnic_inbox_fds(inbox, fds);
	assert_int_equal(send_inbox(1, fds, 2), -EPROTO);
	assert_false(fd_guard_next_inbox(&token, got));
	/* The helper has closed its copies. */
	close(pipe_ends[1]);
	assert_true(comes(pipe_ends[0], 0));
	close(pipe_ends[0]);
	vnic_inbox_destroy(inbox);
}

/* A program sends more descriptors than an inbox has: the helper closes the others. */
static void further_descriptors_are_closed(void **state)
{
	int fds[2 * VNIC_INBOX_FDS], got[VNIC_INBOX_FDS], pipe_ends[2];
	struct vnic_inbox_broker *broker;
	struct vnic_inbox *inbox;
	uint64_t token;

	(void)state;
	assert_int_equal(pipe2(pipe_ends, O_CLOEXEC), 0);
	assert_int_equal(vnic_inbox_create(MTU, &inbox), 0);
	vnic_inbox_fds(inbox, fds);
	for (int i = VNIC_INBOX_FDS; i < 2 * VNIC_INBOX_FDS; i++)
		fds[i] = pipe_ends[1];
	for (uint32_t n = VNIC_INBOX_FDS + 1; n <= 2 * VNIC_INBOX_FDS; n++) {
		assert_int_equal(send_inbox(n, fds, n), 0);
		assert_true(comes(fd_guard_fd(), POLLIN));
		assert_true(fd_guard_next_inbox(&token, got));
		assert_int_equal(token, n);
		assert_int_equal(vnic_inbox_broker_open(got, MTU, &broker), 0);
		vnic_inbox_broker_close(broker);
	}
	close(pipe_ends[1]);
	assert_true(comes(pipe_ends[0], 0));
	close(pipe_ends[0]);
	vnic_inbox_destroy(inbox);
}

#define SILENT 700

/* The socket of a program that says nothing. */
static int make_silent_socket(void)
{
	int socket;

	/* The helper may be slower than this process. */
	while ((socket = fd_guard_check_inbox(1, 12345)) == -EAGAIN)
		usleep(1000);
	assert_true(socket >= 0);
	return socket;
}

/* Many more programs that say nothing than a user may have workers: others' sockets are closed. */
static void silent_programs_delay_no_other_user(void **state)
{
	int sockets[SILENT];

	(void)state;
	for (int i = 0; i < SILENT; i++)
		sockets[i] = make_silent_socket();
	check_loaded_socket_is_closed();
	for (int i = 0; i < SILENT; i++)
		close(sockets[i]);
}

/* The worker has a copy of the ended helper's socket: the daemon's messages are still accepted. */
static void another_helper_is_started_beside_a_worker(void **state)
{
	int silent = make_silent_socket();

	(void)state;
	check_another_helper_is_started();
	close(silent);
}

/* Number of calls of recvmsg(2) by other processes, that is by the helper, that still fail. The
 * kernel may lack memory. */
static atomic_int *helper_failures;
static pid_t test_pid;

ssize_t __real_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags);

ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags)
{
	if (getpid() == test_pid || !helper_failures || atomic_fetch_sub(helper_failures, 1) <= 0)
		return __real_recvmsg(fd, message, flags);
	errno = ENOMEM;
	return -1;
}

static void helper_outlives_a_failure(void **state)
{
	pid_t helper = helper_pid();

	(void)state;
	/* The next helper inherits the counter. */
	fd_guard_stop();
	(void)waitpid(helper, NULL, 0);
	test_pid = getpid();
	helper_failures = mmap(NULL, sizeof(*helper_failures), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(helper_failures, MAP_FAILED);
	assert_int_equal(fd_guard_start(), 0);
	helper = helper_pid();
	atomic_store(helper_failures, 2);
	check_loaded_socket_is_closed();
	assert_true(atomic_load(helper_failures) <= 0);
	/* The helper still runs. */
	assert_int_equal(waitpid(helper, NULL, WNOHANG), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loaded_socket_is_closed),
		cmocka_unit_test(daemon_never_closes_the_last_copy),
		cmocka_unit_test(empty_socket_needs_no_helper),
		cmocka_unit_test(backlog_is_closed),
		cmocka_unit_test(inbox_is_passed_on),
		cmocka_unit_test(inbox_without_all_descriptors_is_closed),
		cmocka_unit_test(other_descriptors_are_refused),
		cmocka_unit_test(further_descriptors_are_closed),
		cmocka_unit_test(silent_programs_delay_no_other_user),
		cmocka_unit_test(another_helper_is_started),
		cmocka_unit_test(another_helper_is_started_beside_a_worker),
		cmocka_unit_test(helper_outlives_a_failure),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
