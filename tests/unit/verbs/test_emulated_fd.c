/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A thread duplicates a descriptor while another one closes it: the object is released once, and
 * the duplicate gets no object that was reused meanwhile. */
#include "process/emulated_fd.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define ROUNDS    5000
#define FD        1000
#define DUPLICATE 1001
#define OTHER     1002

static atomic_uint releases;
/* The number of the round in which both threads are; negative: the duplicating thread is done. */
static atomic_int turn;

static void release(struct fd_object *object)
{
	(void)object;
	releases++;
}

static void await(int wanted)
{
	while (atomic_load(&turn) != wanted)
		sched_yield();
}

static void *duplicate(void *unused)
{
	for (int i = 1; i <= ROUNDS; i++) {
		await(i);
		fd_duplicated(FD, DUPLICATE);
		atomic_store(&turn, -i);
	}
	return unused;
}

static void an_object_is_released_once(void **state)
{
	struct fd_object object = {.kind = FD_RDMACM, .release = release};
	pthread_t thread;

	(void)state;
	fd_set_owner();
	assert_int_equal(pthread_create(&thread, NULL, duplicate, NULL), 0);
	for (int i = 1; i <= ROUNDS; i++) {
		assert_int_equal(fd_install(FD, &object), 0);
		atomic_store(&turn, i);
		fd_remove(FD);
		await(-i);
		fd_remove(DUPLICATE);
		assert_int_equal(releases, i);
		assert_int_equal(object.fds, 0);
	}
	pthread_join(thread, NULL);
	assert_false(fd_any());
}

static struct fd_object reused = {.kind = FD_UVERBS, .release = release};

/* As another thread does during the duplication. */
static void close_and_reuse(struct fd_object *object)
{
	(void)object;
	fd_remove(FD);
	assert_int_equal(fd_install(OTHER, &reused), 0);
}

static void a_duplicate_gets_no_reused_object(void **state)
{
	struct fd_object replaced = {.kind = FD_RDMACM, .release = close_and_reuse};

	(void)state;
	fd_set_owner();
	assert_int_equal(fd_install(FD, &reused), 0);
	assert_int_equal(fd_install(DUPLICATE, &replaced), 0);
	fd_duplicated(FD, DUPLICATE);
	assert_null(fd_find(DUPLICATE));
	assert_int_equal(reused.fds, 1);
	fd_remove(OTHER);
	assert_false(fd_any());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_object_is_released_once),
		cmocka_unit_test(a_duplicate_gets_no_reused_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
