/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A signal handler forks while its thread waits for the daemon. The child gives its parent's NIC
 * up, returns from the handler to the request, and the request ends with an error.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include <vnic/driver.h>

#include "asleep.h"
#include "daemon.h"

static struct vnic_driver *driver;
static volatile pid_t child;

static void fork_in_handler(int signal_number)
{
	(void)signal_number;
	child = fork();
	if (child)
		return;
	alarm(60); /* ends a child that waits for ever */
	vnic_driver_abandon(driver);
}

struct asker {
	pthread_t thread;
	atomic_int tid;
};

static void *ask(void *arg)
{
	struct asker *asker = arg;
	const pid_t parent = getpid();
	struct vnic_next_hop hop;
	int rc;

	asker->tid = gettid();
	rc = vnic_driver_resolve(driver, 0, (const uint8_t[16]){0}, &hop);
	/* The daemon never answers, so only a child of the handler comes here. */
	_exit(getpid() != parent && rc < 0 ? 0 : 1);
}

/* Returns when the thread waits for the daemon's answer, or for its turn to ask. */
static void start_asker(struct asker *asker)
{
	asker->tid = 0;
	if (pthread_create(&asker->thread, NULL, ask, asker))
		_exit(2);
	while (!asker->tid)
		sched_yield();
	asleep_await(asker->tid);
}

static void check_child(struct asker *asker)
{
	int status;

	child = 0;
	pthread_kill(asker->thread, SIGUSR1);
	while (!child)
		sched_yield();
	if (waitpid(child, &status, 0) != child || status)
		_exit(3);
}

static void asking_client(const char *run_dir)
{
	struct asker served, waiting;
	struct vnic_attach_welcome w;

	if (vnic_driver_attach(run_dir, &w, &driver))
		_exit(4);
	signal(SIGUSR1, fork_in_handler);
	start_asker(&served);
	start_asker(&waiting);
	check_child(&waiting);
	check_child(&served);
	_exit(0);
}

static void ignore_request(void *ctx, struct vnic_server_client *client,
			   const struct vnic_attach_resolve *request)
{
	(void)ctx;
	(void)client;
	(void)request;
}

static void test_requests_of_a_forked_child_end(void **state)
{
	const struct vnic_server_ops silent = {.welcome = welcome, .resolve = ignore_request};
	struct daemon *d = *state;
	int status, rc = 0;

	d->child = fork();
	assert_true(d->child >= 0);
	if (!d->child) {
		close(d->listen_fd);
		asking_client(d->run_dir);
	}
	accept_client(d);
	while (!rc) {
		assert_true(readable(vnic_server_fd(d->client), PATIENCE));
		rc = vnic_server_event(d->client, &silent, d);
	}
	assert_int_equal(rc, -ECONNRESET);
	assert_int_equal(waitpid(d->child, &status, 0), d->child);
	d->child = 0;
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_requests_of_a_forked_child_end, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
