/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How often the device process attaches its session to a daemon that does not answer, and what it
 * does while it cannot watch the daemon's descriptors.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <vnic/attach_protocol.h>

#include "common/clock.h"
#include "lan.h"
#include "server.h"
#include "vm/host/machine_session.h"

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
static unsigned attempts;
static int answer; /* 0: the real attachment */

/* The linker puts these functions in the places of vnic_driver_attach_machine and epoll_ctl. */
int __real_vnic_driver_attach_machine(const char *run_dir, const uint8_t of[6],
				      const struct vnic_attach_welcome *was,
				      struct vnic_attach_welcome *now, struct vnic_driver **drv);
int __wrap_vnic_driver_attach_machine(const char *run_dir, const uint8_t of[6],
				      const struct vnic_attach_welcome *was,
				      struct vnic_attach_welcome *now, struct vnic_driver **drv);

int __wrap_vnic_driver_attach_machine(const char *run_dir, const uint8_t of[6],
				      const struct vnic_attach_welcome *was,
				      struct vnic_attach_welcome *now, struct vnic_driver **drv)
{
	attempts++;
	return answer ? answer : __real_vnic_driver_attach_machine(run_dir, of, was, now, drv);
}

static int full_epoll_fd = -1; /* to this set no descriptor can be added */

int __real_epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event);

int __wrap_epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event)
{
	if (op != EPOLL_CTL_ADD || epoll_fd != full_epoll_fd)
		return __real_epoll_ctl(epoll_fd, op, fd, event);
	errno = ENOSPC;
	return -1;
}

static void look_for_a_minute(struct vm_session *s, uint64_t begin)
{
	attempts = 0;
	for (uint64_t now = begin; now < begin + 60 * NS_PER_SEC; now += NS_PER_SEC / 20)
		assert_true(vm_session_tick(s, now) > now);
}

static void test_a_silent_daemon_is_asked_rarely(void **state)
{
	const struct session_queries queries = {0};
	const uint64_t begin = now_ns();
	struct vm_session s;

	(void)state;
	answer = -ETIMEDOUT;
	assert_int_equal(vm_session_open(&s, "/nonexistent", mac, &queries), 0);
	look_for_a_minute(&s, begin);
	assert_in_range(attempts, 4, 8);
	/* Without a daemon no look waits, so they are frequent. */
	answer = -ENOENT;
	look_for_a_minute(&s, begin + 60 * NS_PER_SEC);
	assert_true(attempts > 100);
	vm_session_close(&s);
}

static void make_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	close(fd);
}

/* The file system may give the new file the old one's inode. */
static void make_anew(const char *path)
{
	assert_int_equal(unlink(path), 0);
	usleep(20000); /* longer than the step of the clock that dates files */
	make_file(path);
}

#define PATH_ROOM 64

/* The session's first attempt, by the socket `path` in the new directory `dir`, ends with `error`.
 */
static void open_refused(struct vm_session *s, char *dir, char path[PATH_ROOM], int error)
{
	static const struct session_queries queries;

	assert_non_null(mkdtemp(dir));
	snprintf(path, PATH_ROOM, "%s/" VNIC_SOCKET_NAME, dir);
	make_file(path);
	answer = error;
	assert_int_equal(vm_session_open(s, dir, mac, &queries), 0);
}

static void close_refused(struct vm_session *s, const char *dir, const char *path)
{
	vm_session_close(s);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

/* The daemon that has not answered was killed, and the next one waits for claims for 3 s only. */
static void test_the_daemon_after_a_silent_one_is_asked_at_once(void **state)
{
	char dir[] = "/tmp/urxe-test-session-XXXXXX", path[PATH_ROOM];
	const uint64_t begin = now_ns();
	struct vm_session s;

	(void)state;
	open_refused(&s, dir, path, -ETIMEDOUT);
	attempts = 0;
	vm_session_tick(&s, begin + NS_PER_SEC);
	assert_int_equal(attempts, 0);
	make_anew(path);
	vm_session_tick(&s, begin + 2 * NS_PER_SEC);
	assert_int_equal(attempts, 1);
	close_refused(&s, dir, path);
}

/* A user's quota may be used up for as long as the machine runs. */
static void test_a_refusal_that_lasts_is_asked_for_rarely(void **state)
{
	char dir[] = "/tmp/urxe-test-session-XXXXXX", path[PATH_ROOM];
	const uint64_t begin = now_ns();
	struct vm_session s;

	(void)state;
	open_refused(&s, dir, path, -ENOSPC);
	look_for_a_minute(&s, begin);
	assert_in_range(attempts, 4, 12);
	attempts = 0;
	vm_session_tick(&s, begin + 60 * NS_PER_SEC);
	assert_int_equal(attempts, 0);
	make_anew(path);
	vm_session_tick(&s, begin + 62 * NS_PER_SEC);
	assert_int_equal(attempts, 1);
	close_refused(&s, dir, path);
}

static unsigned attempts_after(int error)
{
	const struct session_queries queries = {0};
	const uint64_t begin = now_ns();
	struct vm_session s;

	answer = error;
	assert_int_equal(vm_session_open(&s, "/nonexistent", mac, &queries), 0);
	attempts = 0;
	for (int i = 1; i <= 10; i++)
		vm_session_tick(&s, begin + (uint64_t)i * NS_PER_SEC);
	vm_session_close(&s);
	return attempts;
}

/* The host's table of files was full, for instance. */
static void test_a_passing_error_does_not_end_the_session(void **state)
{
	(void)state;
	assert_in_range(attempts_after(-ENFILE), 4, 9);
	assert_in_range(attempts_after(-EMFILE), 4, 9);
	assert_in_range(attempts_after(-ENOMEM), 4, 9);
	assert_int_equal(attempts_after(-EBUSY), 10);
	assert_in_range(attempts_after(-ENOSPC), 4, 9);
	assert_int_equal(attempts_after(-EPERM), 0);
	assert_int_equal(attempts_after(-EPROTO), 0);
}

/* --- A daemon. */

static struct {
	struct server_process base; /* first member: callbacks get a pointer to it */
	struct server server;
	struct vm_session session;
	uint64_t now; /* of the session */
} w;

static void *open_thread(void *arg)
{
	static const struct session_queries queries;
	struct server_process *p = arg;

	p->status = vm_session_open(&w.session, w.server.run_dir, mac, &queries);
	atomic_store(&p->done, true);
	return NULL;
}

static void *tick_thread(void *arg)
{
	struct server_process *p = arg;

	w.now += NS_PER_SEC;
	vm_session_tick(&w.session, w.now);
	atomic_store(&p->done, true);
	return NULL;
}

static void take_events(void)
{
	server_take_events(&w.server, NS_PER_SEC);
	sessions_reap(&w.server.sessions);
}

static void tick(void)
{
	server_call(tick_thread, &w.base, take_events);
	take_events();
}

static void restart_daemon(void)
{
	server_end(&w.server);
	server_begin(&w.server, NS_PER_SEC);
}

static bool has_event(void)
{
	struct pollfd event = {.fd = w.session.epoll_fd, .events = POLLIN};

	return poll(&event, 1, 0) == 1;
}

static int attach(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	answer = 0;
	w.now = now_ns();
	server_open(&w.server);
	server_begin(&w.server, NS_PER_SEC);
	server_call(open_thread, &w.base, take_events);
	assert_int_equal(w.base.status, 0);
	assert_non_null(w.session.nic);
	return 0;
}

static int detach(void **state)
{
	(void)state;
	full_epoll_fd = -1;
	server_end(&w.server);
	vm_session_close(&w.session);
	server_close(&w.server);
	return 0;
}

/* A user may have no more than fs.epoll.max_user_watches descriptors in sets. */
static void test_a_full_epoll_set_costs_no_numbers(void **state)
{
	const uint32_t qpn = vm_session_take_qpn(&w.session);

	(void)state;
	restart_daemon();
	vm_session_event(&w.session);
	assert_null(w.session.nic);
	full_epoll_fd = w.session.epoll_fd;
	for (int i = 0; i < 3; i++)
		tick();
	assert_non_null(w.session.nic);
	assert_non_null(lease_owner(&w.server.sw.leases, qpn));
	/* Without an event the session notices the daemon's end, too. */
	restart_daemon();
	assert_false(has_event());
	for (int i = 0; i < 2; i++)
		tick();
	assert_non_null(lease_owner(&w.server.sw.leases, qpn));
	full_epoll_fd = -1;
	tick();
	assert_false(has_event());
	restart_daemon();
	assert_true(has_event());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_silent_daemon_is_asked_rarely),
		cmocka_unit_test(test_the_daemon_after_a_silent_one_is_asked_at_once),
		cmocka_unit_test(test_a_refusal_that_lasts_is_asked_for_rarely),
		cmocka_unit_test(test_a_passing_error_does_not_end_the_session),
		cmocka_unit_test_setup_teardown(test_a_full_epoll_set_costs_no_numbers, attach,
						detach),
	};

	return cmocka_run_group_tests(tests, lan_start, NULL);
}
