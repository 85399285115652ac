/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Children that a signal handler forks while its thread restores a process. The child returns from
 * the handler into the restore, which fails there, and can open the device itself afterwards. The
 * test plays the daemon.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "adapter/adapter.h"
#include "attach/attach.h"
#include "attach/attach_private.h"
#include "attach/engine_thread.h"
#include "vnic_loop.h"

#define MTU   1500
#define BLOCK 0x1000

int __wrap_vnic_driver_demand(const char *dir, uint32_t qpn_first,
			      struct vnic_attach_welcome *welcome, struct vnic_driver **nic);
int __wrap_vnic_driver_make_inbox(struct vnic_driver *nic, uint16_t mtu, struct vnic_inbox **inbox);
int __wrap_adapter_restore_engine(const struct adapter_saved *saved, struct urxe_copy_table *table);
int __wrap_engine_thread_start(void);
void __wrap_engine_thread_stop(void);

/* Where a signal handler forks. */
enum fork_place { AT_DEMAND, AFTER_BEGIN, AT_THREAD_START };

static enum fork_place fork_place;
static int demand_error; /* the daemon's answer */
static struct vnic_loop *loop;
static pid_t child;

static void fork_at(enum fork_place place)
{
	if (place != fork_place)
		return;
	child = fork();
	assert_true(child >= 0);
	if (!child)
		alarm(20); /* ends a child that waits for ever */
}

int __wrap_vnic_driver_demand(const char *dir, uint32_t qpn_first,
			      struct vnic_attach_welcome *welcome, struct vnic_driver **nic)
{
	(void)dir;
	fork_at(AT_DEMAND);
	if (demand_error)
		return demand_error;
	*welcome = (struct vnic_attach_welcome){
		.mac = {2, 0, 0, 0, 0, 1}, .mtu = MTU, .pkeys = {0xffff}, .qpn_first = qpn_first};
	welcome->port.link_mtu = MTU;
	assert_int_equal(vnic_loop_open(MTU, &loop), 0);
	*nic = loop->driver;
	return 0;
}

int __wrap_vnic_driver_make_inbox(struct vnic_driver *nic, uint16_t mtu, struct vnic_inbox **inbox)
{
	(void)nic;
	(void)mtu;
	(void)inbox;
	return -EMFILE;
}

/* The saved process had no objects. */
int __wrap_adapter_restore_engine(const struct adapter_saved *saved, struct urxe_copy_table *table)
{
	(void)saved;
	return adapter_make_engine(table);
}

int __wrap_engine_thread_start(void)
{
	fork_at(AT_THREAD_START);
	return 0;
}

void __wrap_engine_thread_stop(void)
{
}

/* --- The restore. */

static const uint32_t blocks[] = {BLOCK};

static int restore(bool abort_it)
{
	struct adapter_saved saved = {.blocks = blocks, .n_blocks = 1};
	int rc = adapter_restore_begin(&saved);

	if (rc)
		return rc;
	fork_at(AFTER_BEGIN);
	if (!abort_it)
		return adapter_restore_end(&saved, 1);
	adapter_restore_abort(&saved);
	return -EIO;
}

static bool is_open_lock_free(void)
{
	const bool is_free = !pthread_mutex_trylock(&adapter_open_lock);

	if (is_free)
		pthread_mutex_unlock(&adapter_open_lock);
	return is_free;
}

/* The child's adapter is gone, and opens and closes take the lock. */
static void end_child(int rc)
{
	uint32_t generation;

	_exit(rc == -EIO && is_open_lock_free() && !adapter.dev && !adapter_ref(&generation) ? 0
											     : 1);
}

static int restore_and_fork(enum fork_place place, bool abort_it)
{
	int rc, status;

	fork_place = place;
	rc = restore(abort_it);
	if (!child)
		end_child(rc);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(is_open_lock_free());
	return rc;
}

static int setup(void **state)
{
	(void)state;
	setenv("URXE_DIR", "/nowhere", 1);
	demand_error = 0;
	loop = NULL;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (loop)
		vnic_loop_close(loop);
	return 0;
}

static void expect_restored(enum fork_place place)
{
	assert_int_equal(restore_and_fork(place, false), 0);
	assert_non_null(adapter.dev);
	adapter_unref(adapter_fork_generation);
	assert_null(adapter.dev);
}

static void a_child_forked_at_the_start_of_the_thread_has_no_adapter(void **state)
{
	(void)state;
	expect_restored(AT_THREAD_START);
}

static void a_child_forked_within_the_restore_has_no_adapter(void **state)
{
	(void)state;
	expect_restored(AFTER_BEGIN);
}

static void a_child_forked_at_the_request_has_no_adapter(void **state)
{
	(void)state;
	expect_restored(AT_DEMAND);
}

static void a_child_forked_at_a_refused_request_may_open_the_device(void **state)
{
	(void)state;
	demand_error = -EACCES;
	assert_int_equal(restore_and_fork(AT_DEMAND, false), -EACCES);
	assert_null(adapter.dev);
}

static void a_child_forked_before_the_end_of_a_restore_has_no_adapter(void **state)
{
	(void)state;
	assert_int_equal(restore_and_fork(AFTER_BEGIN, true), -EIO);
	assert_null(adapter.dev);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_child_forked_at_the_start_of_the_thread_has_no_adapter),
		CASE(a_child_forked_within_the_restore_has_no_adapter),
		CASE(a_child_forked_at_the_request_has_no_adapter),
		CASE(a_child_forked_at_a_refused_request_may_open_the_device),
		CASE(a_child_forked_before_the_end_of_a_restore_has_no_adapter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
