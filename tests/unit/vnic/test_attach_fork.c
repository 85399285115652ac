/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A signal handler forks while its thread waits for the daemon. The child returns from the handler
 * to the request, and the request ends with an error. The daemon's answer reaches the parent, whose
 * connection goes on.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include <vnic/driver.h>

#include "asleep.h"
#include "daemon.h"

static struct vnic_driver *driver;
static struct vnic_attach_welcome welcomed;
/* What the child does in the handler, as the handlers of fork. NULL: nothing. */
static void (*leave)(struct vnic_driver *drv);
static atomic_bool child_ended;
static int child_status;
/* The client writes a byte to the second end when the daemon may answer. */
static int answer[2];

/* --- The client. */

static void let_answer(void)
{
	if (write(answer[1], "", 1) != 1)
		_exit(2);
}

/*
 * The parent's thread waits in the handler. Without a driver to leave, the daemon answers
 * meanwhile: nothing else than the child could take the answer.
 */
static void fork_in_handler(int signal_number)
{
	const pid_t child = fork();

	(void)signal_number;
	if (!child) {
		alarm(60); /* ends a child that waits for ever */
		if (leave)
			leave(driver);
		return;
	}
	if (!leave)
		let_answer();
	if (waitpid(child, &child_status, 0) != child)
		_exit(3);
	child_ended = true;
}

struct asker {
	pthread_t thread;
	int (*ask)(void);
	atomic_int tid;
	int rc;
};

static int resolve_next_hop(void)
{
	struct vnic_next_hop hop;

	return vnic_driver_resolve(driver, 0, (const uint8_t[16]){0}, &hop);
}

static const char *run_dir;

static int attach_to_daemon(void)
{
	return vnic_driver_attach(run_dir, &welcomed, &driver);
}

static void *run_asker(void *arg)
{
	struct asker *asker = arg;
	const pid_t parent = getpid();

	asker->tid = gettid();
	asker->rc = asker->ask();
	if (getpid() == parent)
		return arg;
	/* A request that begins after the fork fails as well. */
	_exit(asker->rc < 0 && (!leave || resolve_next_hop() < 0) ? 0 : 1);
}

/* Returns when the thread waits for the daemon's answer, or for its turn to ask. */
static void start_asker(struct asker *asker, int (*ask)(void))
{
	asker->ask = ask;
	asker->tid = 0;
	if (pthread_create(&asker->thread, NULL, run_asker, asker))
		_exit(4);
	while (!asker->tid)
		sched_yield();
	asleep_await(asker->tid);
}

static void check_child(struct asker *asker)
{
	child_ended = false;
	pthread_kill(asker->thread, SIGUSR1);
	while (!child_ended)
		sched_yield();
	if (child_status)
		_exit(5);
}

static void check_parent(struct asker *asker)
{
	if (pthread_join(asker->thread, NULL) || asker->rc)
		_exit(6);
}

static void resolving_client(void)
{
	struct asker served, waiting;

	if (attach_to_daemon())
		_exit(7);
	start_asker(&served, resolve_next_hop);
	start_asker(&waiting, resolve_next_hop);
	check_child(&waiting);
	check_child(&served);
	let_answer();
	check_parent(&served);
	check_parent(&waiting);
}

static void attaching_client(void)
{
	struct asker attaching;

	start_asker(&attaching, attach_to_daemon);
	check_child(&attaching);
	check_parent(&attaching);
}

static void spawn_client(struct daemon *d, void (*client)(void))
{
	assert_int_equal(pipe(answer), 0);
	d->child = fork();
	assert_true(d->child >= 0);
	if (d->child) {
		close(answer[1]);
		return;
	}
	close(d->listen_fd);
	run_dir = d->run_dir;
	signal(SIGUSR1, fork_in_handler);
	client();
	_exit(resolve_next_hop() ? 8 : 0);
}

/* --- The daemon. */

static void ignore_request(void *ctx, struct vnic_server_client *client,
			   const struct vnic_attach_resolve *request)
{
	(void)ctx;
	(void)client;
	(void)request;
}

static bool may_answer(int ms)
{
	return readable(answer[0], ms);
}

/* Answers no RESOLVE, until the client's children have ended. */
static void serve_silently(struct daemon *d)
{
	const struct vnic_server_ops silent = {.welcome = welcome, .resolve = ignore_request};

	while (!may_answer(0))
		if (readable(vnic_server_fd(d->client), 10))
			assert_int_equal(vnic_server_event(d->client, &silent, d), 0);
}

/* Answers the client until it ends without an error. */
static void serve_to_end(struct daemon *d)
{
	int status, rc = 0;

	while (!rc) {
		assert_true(readable(vnic_server_fd(d->client), PATIENCE));
		rc = vnic_server_event(d->client, &ops, d);
	}
	assert_int_equal(rc, -ECONNRESET);
	assert_int_equal(waitpid(d->child, &status, 0), d->child);
	d->child = 0;
	assert_int_equal(status, 0);
	close(answer[0]);
}

static void fork_during_requests(struct daemon *d)
{
	spawn_client(d, resolving_client);
	accept_client(d);
	serve_silently(d);
	assert_int_equal(vnic_server_resolved(d->client, 0, &(struct vnic_next_hop){0}), 0);
	serve_to_end(d);
	/* The second thread's, and that after the children. */
	assert_int_equal(d->resolves, 2);
}

/* The adapter's lock was free: the child gives its parent's NIC up in the handler. */
static void test_requests_of_a_forked_child_end(void **state)
{
	leave = vnic_driver_abandon;
	fork_during_requests(*state);
}

/* The thread holds the adapter's lock: the child gives the NIC up when the request has ended. */
static void test_requests_with_a_lock_end_in_a_forked_child(void **state)
{
	leave = vnic_driver_isolate;
	fork_during_requests(*state);
}

/* Nothing knows the NIC yet. */
static void test_attachment_ends_in_a_forked_child(void **state)
{
	struct daemon *d = *state;

	leave = NULL;
	spawn_client(d, attaching_client);
	accept_client(d);
	assert_true(may_answer(PATIENCE));
	serve_to_end(d);
	assert_int_equal(d->resolves, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DAEMON_TEST(test_requests_of_a_forked_child_end),
		DAEMON_TEST(test_requests_with_a_lock_end_in_a_forked_child),
		DAEMON_TEST(test_attachment_ends_in_a_forked_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
