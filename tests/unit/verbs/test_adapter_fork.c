/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Children that signal handlers fork while their thread opens or closes a context, or asks the
 * daemon. The child returns from the handler into the call. The test plays the daemon.
 */
#include "adapter/adapter.h"

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
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <vnic/server.h>

#include "asleep.h"
#include "attach/attach.h"
#include "loop_adapter.h"
#include "requests/daemon_requests.h"
#include "uverbs/ucontext.h"
#include "uverbs/uverbs.h"

#define MTU 1500

static const uint8_t gid[16] = {0xfe, 0x80, [15] = 1};

/* --- In place of the daemon. */

int __real_adapter_open(uint32_t *generation);
int __wrap_adapter_open(uint32_t *generation);
bool __wrap_adapter_ref(uint32_t *generation);
void __wrap_adapter_unref(uint32_t generation);
void __wrap_told_qp_flush(void);
int __wrap_vnic_driver_lease(struct vnic_driver *nic, uint32_t *qpn_first);

/* Where a signal handler forks. */
static enum { FORK_NOWHERE, FORK_AFTER_OPEN, FORK_BEFORE_FLUSH, FORK_AFTER_LEASE } fork_place;
static pid_t forked_child;

static void fork_at(int place)
{
	if ((int)fork_place != place)
		return;
	fork_place = FORK_NOWHERE;
	forked_child = fork();
}

/* Uses that began in this process, and have not ended. */
static int uses;

bool __wrap_adapter_ref(uint32_t *generation)
{
	*generation = adapter_fork_generation;
	uses++;
	return true;
}

int __wrap_adapter_open(uint32_t *generation)
{
	__wrap_adapter_ref(generation);
	fork_at(FORK_AFTER_OPEN);
	return 0;
}

int __wrap_vnic_driver_lease(struct vnic_driver *nic, uint32_t *qpn_first)
{
	(void)nic;
	*qpn_first = VNIC_LEASE_QPNS;
	fork_at(FORK_AFTER_LEASE);
	return 0;
}

void __wrap_told_qp_flush(void)
{
	fork_at(FORK_BEFORE_FLUSH);
}

void __wrap_adapter_unref(uint32_t generation)
{
	if (generation == adapter_fork_generation)
		uses--;
}

/* --- The program. */

static struct vnic_loop *loop;

static int setup(void **state)
{
	(void)state;
	loop = loop_adapter_open(MTU);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	loop_adapter_close(loop);
	assert_int_equal(uses, 0);
	return 0;
}

static void close_own(int fd)
{
	fd_remove(fd);
	close(fd);
}

/* --- Contexts. */

static void expect_child_success(void)
{
	int status;

	assert_int_equal(waitpid(forked_child, &status, 0), forked_child);
	assert_int_equal(status, 0);
}

/* The parent's use of the adapter is not the child's. */
static void a_forked_child_ends_no_use_with_its_parents_context(void **state)
{
	const int device = uverbs_file_open(O_CLOEXEC);

	(void)state;
	assert_true(device >= 0);
	fork_place = FORK_BEFORE_FLUSH;
	close_own(device);
	if (!forked_child)
		_exit(uses == 1 ? 0 : 1);
	expect_child_success();
	assert_int_equal(uses, 0);
}

static void a_forked_child_opens_no_context_of_its_parent(void **state)
{
	int fd;

	(void)state;
	fork_place = FORK_AFTER_OPEN;
	fd = uverbs_file_open(O_CLOEXEC);
	if (!forked_child)
		_exit(fd == -EIO && LIST_EMPTY(&adapter.files) ? 0 : 1);
	expect_child_success();
	assert_true(fd >= 0);
	close_own(fd);
}

/* --- What the parent's daemon has granted and knows. */

static void a_forked_child_gets_no_lease_of_its_parent(void **state)
{
	int rc;

	(void)state;
	fork_place = FORK_AFTER_LEASE;
	rc = adapter_lease_qpns();
	if (!forked_child)
		_exit(rc == -EIO && !adapter.leases.n ? 0 : 1);
	expect_child_success();
	assert_int_equal(rc, 0);
	assert_int_equal(adapter.leases.n, 1);
}

/* The child has a connection of its own, of which its daemon knows. */
static int release_of_child(struct told_qp *parents)
{
	struct told_qp *own;
	bool kept;

	adapter_lock();
	own = told_qp_restore(3, gid, 4);
	told_qp_release(parents);
	kept = LIST_FIRST(&adapter.remote_qps) == own && LIST_EMPTY(&adapter.released_qps);
	adapter_unlock();
	return kept ? 0 : 1;
}

static void a_forked_child_releases_no_connection_of_its_parent(void **state)
{
	struct told_qp *remote;

	(void)state;
	adapter_lock();
	remote = told_qp_restore(1, gid, 2);
	adapter_unlock();
	forked_child = fork();
	if (!forked_child)
		_exit(release_of_child(remote));
	expect_child_success();
	adapter_lock();
	told_qp_release(remote);
	assert_true(LIST_EMPTY(&adapter.remote_qps));
	assert_ptr_equal(LIST_FIRST(&adapter.released_qps), remote);
	told_qp_forget_released();
	adapter_unlock();
}

/* --- A signal handler that forks within fork. */

static bool forks_within;

static void fork_within(void)
{
	if (!forks_within)
		return;
	forks_within = false;
	forked_child = fork();
	if (!forked_child)
		_exit(0);
}

/* The locks of the adapter are free afterwards. */
static void a_handler_may_fork_within_fork(void **state)
{
	pid_t outer;
	int status;

	(void)state;
	forks_within = true;
	outer = fork();
	if (!outer)
		_exit(0);
	assert_int_equal(waitpid(outer, &status, 0), outer);
	assert_int_equal(status, 0);
	expect_child_success();
	assert_int_equal(pthread_mutex_trylock(&adapter_open_lock), 0);
	pthread_mutex_unlock(&adapter_open_lock);
	assert_true(adapter_trylock());
	adapter_unlock();
}

/* Otherwise the fork would wait for the lock of its own thread. */
static void a_handler_may_fork_after_a_poll(void **state)
{
	(void)state;
	adapter_lock();
	assert_false(adapter_trylock()); /* the handler polls an empty CQ */
	assert_true(adapter_inside);
	forked_child = fork();
	if (!forked_child)
		_exit(0);
	expect_child_success();
	adapter_unlock();
	assert_false(adapter_inside);
}

/* --- The attachment to a daemon that does not answer. */

static atomic_int opener_tid;
static atomic_bool child_ended;
static int child_status;

static void fork_in_handler(int number)
{
	const pid_t child = fork();

	(void)number;
	if (!child) {
		alarm(60); /* ends a child that waits for ever */
		return;
	}
	if (waitpid(child, &child_status, 0) != child)
		abort();
	child_ended = true;
}

static void *open_adapter(void *arg)
{
	const pid_t parent = getpid();
	uint32_t generation;
	int rc;

	opener_tid = gettid();
	rc = __real_adapter_open(&generation);
	if (getpid() != parent)
		_exit(rc == -EIO && !pthread_mutex_trylock(&adapter_open_lock) ? 0 : 1);
	assert_true(rc < 0);
	return arg;
}

/* The child may open the device itself. */
static void a_forked_child_does_not_attach_for_its_parent(void **state)
{
	char dir[] = "/tmp/urxe-test-fork-XXXXXX", path[64];
	pthread_t opener;
	int listener;

	(void)state;
	adapter = (struct adapter){0};
	assert_non_null(mkdtemp(dir));
	assert_int_equal(setenv("URXE_DIR", dir, 1), 0);
	assert_int_equal(setenv("URXE_RECONNECT_S", "0", 1), 0);
	listener = vnic_server_listen(dir);
	assert_true(listener >= 0);
	signal(SIGUSR1, fork_in_handler);
	assert_int_equal(pthread_create(&opener, NULL, open_adapter, NULL), 0);
	while (!opener_tid)
		sched_yield();
	asleep_await(opener_tid);
	pthread_kill(opener, SIGUSR1);
	while (!child_ended)
		sched_yield();
	close(listener);
	assert_int_equal(pthread_join(opener, NULL), 0);
	assert_int_equal(child_status, 0);
	snprintf(path, sizeof(path), "%s/" VNIC_SOCKET_NAME, dir);
	unlink(path);
	rmdir(dir);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_forked_child_opens_no_context_of_its_parent),
		TEST(a_forked_child_ends_no_use_with_its_parents_context),
		TEST(a_forked_child_gets_no_lease_of_its_parent),
		TEST(a_forked_child_releases_no_connection_of_its_parent),
		TEST(a_handler_may_fork_within_fork),
		TEST(a_handler_may_fork_after_a_poll),
		cmocka_unit_test(a_forked_child_does_not_attach_for_its_parent),
	};

	/* First, so that it runs after the adapter's handlers, which take their locks. */
	pthread_atfork(fork_within, NULL, NULL);

	return cmocka_run_group_tests(tests, NULL, NULL);
}
