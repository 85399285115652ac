/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Children that a signal handler forks while its thread restores the objects of a process: the
 * child frees them, and can make objects of its own afterwards.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "adapter/adapter.h"
#include "attach/fork.h"
#include "checkpoint/rebuild.h"
#include "process/emulated_fd.h"

static struct context_record context = {.async_channel = NO_CHANNEL};
static struct pd_record pds[] = {{.object.handle = 1}, {.object.handle = 2, .number = 1}};
static const struct image image = {
	.n = {[CHECKPOINT_CONTEXT] = 1, [CHECKPOINT_PD] = 2},
	.lists = {[CHECKPOINT_CONTEXT] = &context, [CHECKPOINT_PD] = pds},
	.contexts = &context,
	.pds = pds,
};

static void rebuild(struct rebuilt *r)
{
	assert_int_equal(rebuild_contexts(r, &image), 0);
	assert_int_equal(rebuild_objects(r), 0);
	assert_int_equal(handle_counts[OBJECT_PD], 2);
}

static void expect_no_objects(struct rebuilt *r, pid_t child)
{
	int status;

	rebuild_free(r);
	if (!child)
		_exit(handle_counts[OBJECT_PD] ? 1 : 0);
	assert_int_equal(handle_counts[OBJECT_PD], 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void a_forked_child_counts_no_objects(void **state)
{
	struct rebuilt r;

	(void)state;
	rebuild(&r);
	expect_no_objects(&r, fork());
}

static void a_child_that_is_forked_within_the_lock_counts_no_objects(void **state)
{
	struct rebuilt r;
	pid_t child;

	(void)state;
	rebuild(&r);
	adapter_lock();
	child = fork();
	adapter_unlock();
	expect_no_objects(&r, child);
}

static int setup(void **state)
{
	(void)state;
	fd_set_owner();
	adapter_enable_fork_handlers();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_forked_child_counts_no_objects),
		cmocka_unit_test(a_child_that_is_forked_within_the_lock_counts_no_objects),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
