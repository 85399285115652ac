/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What urxed does with the process of a vhost: port after the helper that started it has ended. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <netdev/shm.h>
#include <netdev/vhost.h>

#include "urxed/epoll_watch.h"
#include "urxed/vhost/vhost_process.h"
#include "urxed/vhost/vhost_spawner.h"

#define SECOND 1000000000ull
#define T0     (100 * SECOND)
#define PID    1234567

static struct {
	struct vhost_process process;
	bool helper_ended;
	int kills;
	int status;                /* that the helper reports */
	int end_of_it;             /* the test closes it: the process has ended */
	struct netdev_shm_fds fds; /* of the process's end of the port */
	char log[1000];
} w;

void __wrap_log_ratelimited(struct log_ratelimit *budget, uint64_t now, const char *fmt, ...);

__attribute__((format(printf, 3, 4))) void
__wrap_log_ratelimited(struct log_ratelimit *budget, uint64_t now, const char *fmt, ...)
{
	const size_t at = strlen(w.log);
	va_list args;

	(void)budget;
	(void)now;
	va_start(args, fmt);
	vsnprintf(w.log + at, sizeof(w.log) - at, fmt, args);
	va_end(args);
}

/* The test watches no descriptor. */
int epoll_watch_add(int epoll_fd, int fd, void *what, char error[EPOLL_WATCH_ERROR])
{
	(void)epoll_fd;
	(void)fd;
	(void)what;
	(void)error;
	return 0;
}

/* For vhost_process_start, which the test does not call. */
int netdev_vhost_parse(const char *text, struct netdev_vhost_spec *spec, char *error,
		       uint32_t error_size)
{
	(void)text;
	(void)spec;
	(void)error;
	(void)error_size;
	return -EINVAL;
}

/* --- The helper */

bool vhost_spawner_ended(void)
{
	return w.helper_ended;
}

int vhost_spawner_run(const char *text, const struct vhost_spawner_fds *fds, pid_t *pid,
		      int *pid_fd)
{
	int ends[2];

	(void)text;
	assert_false(w.helper_ended);
	w.fds = (struct netdev_shm_fds){fds->memory, fds->wake, fds->kick};
	assert_int_equal(pipe(ends), 0);
	*pid = PID;
	*pid_fd = ends[0];
	w.end_of_it = ends[1];
	return 0;
}

void vhost_spawner_kill(pid_t pid)
{
	assert_int_equal(pid, PID);
	w.kills += !w.helper_ended;
}

bool vhost_spawner_reap(pid_t pid, int *status)
{
	assert_int_equal(pid, PID);
	*status = w.helper_ended ? VHOST_SPAWNER_UNKNOWN : w.status;
	return true;
}

/* --- Tests */

/* A process that is starting. */
static int setup(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.process = (struct vhost_process){
		.spec = "vhost:/vm", .epoll_fd = -1, .pid_fd = -1, .log_fd = -1};
	if (netdev_shm_create(1500, &w.process.port))
		return -1;
	vhost_process_tick(&w.process, T0);
	return w.process.pid == PID ? 0 : -1;
}

/* One byte makes the pipe readable, as the end of a process makes its pidfd. */
static void end_process(void)
{
	assert_int_equal(write(w.end_of_it, "", 1), 1);
	vhost_process_event(&w.process, T0 + SECOND);
	assert_int_equal(w.process.pid, 0);
}

static int teardown(void **state)
{
	(void)state;
	if (w.process.pid)
		end_process();
	close(w.end_of_it);
	netdev_close(w.process.port);
	return 0;
}

static void hanging_process_is_killed(void **state)
{
	(void)state;
	vhost_process_tick(&w.process, T0 + 61 * SECOND);
	assert_int_equal(w.kills, 1);
	assert_non_null(strstr(w.log, ": urxed kills it"));
	vhost_process_tick(&w.process, T0 + 62 * SECOND);
	assert_int_equal(w.kills, 1);
}

static void log_tells_of_a_hanging_process_that_cannot_be_killed(void **state)
{
	char *cannot;

	(void)state;
	w.helper_ended = true;
	vhost_process_tick(&w.process, T0 + 61 * SECOND);
	assert_int_equal(w.kills, 0);
	assert_null(strstr(w.log, "urxed kills it"));
	cannot = strstr(w.log, "urxed cannot kill it");
	assert_non_null(cannot);
	vhost_process_tick(&w.process, T0 + 62 * SECOND);
	assert_null(strstr(cannot + 1, "urxed cannot kill it"));
}

static void log_tells_the_reason_of_an_end(void **state)
{
	(void)state;
	w.status = 11;
	end_process();
	assert_non_null(strstr(w.log, "was killed by signal 11"));
	assert_non_null(strstr(w.log, "restarts in 100 ms"));
}

/* Only the parent of a process learns its status. */
static void log_tells_of_an_end_without_a_restart(void **state)
{
	(void)state;
	w.helper_ended = true;
	end_process();
	assert_string_equal(w.log, "vhost:/vm: its process has ended");
	assert_true(vhost_process_tick(&w.process, T0 + 2 * SECOND) == UINT64_MAX);
}

static void send_frame(void)
{
	static const uint8_t data[64];
	const struct netdev_frame frame = {.data = data, .len = sizeof(data)};

	assert_int_equal(netdev_tx(w.process.port, T0, &frame, 1), 1);
}

/* The wait of a frame begins when urxed first sees the frame, however long the port was silent. */
static void frame_after_a_silence_waits_as_long_as_any_other(void **state)
{
	struct netdev_shm_peer *peer;
	struct netdev_frame frame;

	(void)state;
	assert_int_equal(netdev_shm_attach(&w.fds, &peer), 0);
	netdev_shm_set_ready(peer);
	assert_true(vhost_process_tick(&w.process, T0) == UINT64_MAX);
	send_frame();
	assert_true(vhost_process_tick(&w.process, T0 + 11 * SECOND) == T0 + 21 * SECOND);
	assert_int_equal(w.kills, 0);
	assert_int_equal(netdev_shm_receive(peer, &frame, 1), 1);
	netdev_shm_release(peer, 1);
	send_frame();
	assert_true(vhost_process_tick(&w.process, T0 + 15 * SECOND) == T0 + 25 * SECOND);
	assert_true(vhost_process_tick(&w.process, T0 + 24 * SECOND) == T0 + 25 * SECOND);
	assert_int_equal(w.kills, 0);
	vhost_process_tick(&w.process, T0 + 25 * SECOND);
	assert_int_equal(w.kills, 1);
	assert_non_null(strstr(w.log, "accepts no frames"));
	netdev_shm_detach(peer);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(hanging_process_is_killed),
		TEST(log_tells_of_a_hanging_process_that_cannot_be_killed),
		TEST(frame_after_a_silence_waits_as_long_as_any_other),
		TEST(log_tells_the_reason_of_an_end),
		TEST(log_tells_of_an_end_without_a_restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
