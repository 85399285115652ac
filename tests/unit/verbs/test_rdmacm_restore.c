/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The rdma_cm device of a restored process, which another thread uses at once. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>

#include "checkpoint/rdmacm_restore.h"
#include "checkpoint/rebuild.h"
#include "rdmacm/rdmacm.h"
#include "rdmacm_daemon.h"
#include "sleeping_thread.h"

/* Commands that the daemon got, in their order. */
static uint32_t commands[8];
static atomic_uint n_commands;

static void note_command(uint32_t command)
{
	const unsigned int n = atomic_load(&n_commands);

	if (n < sizeof(commands) / sizeof(commands[0])) {
		commands[n] = command;
		atomic_store(&n_commands, n + 1);
	}
}

static void await_commands(unsigned int n)
{
	while (atomic_load(&n_commands) < n)
		sched_yield();
}

/* --- A process with one device, and a record of it that urxed takes. */

struct process {
	struct rdmacm_file *file;
	int fd;
	uint8_t record[32];
	struct image_rdmacm_state state;
	struct image image;
	struct rebuilt_device device;
	struct rebuilt rebuilt;
	pthread_t server;
};

static void open_process(struct process *p)
{
	*p = (struct process){0};
	atomic_store(&n_commands, 0);
	on_command = note_command;
	assert_int_equal(pthread_create(&p->server, NULL, serve, NULL), 0);
	p->fd = rdmacm_open(O_CLOEXEC);
	assert_true(p->fd >= 0);
	p->file = rdmacm_lookup(p->fd);
	p->state.bytes = (struct image_bytes){p->record, sizeof(p->record)};
	p->image.rdmacm_states = &p->state;
	p->image.n[CHECKPOINT_RDMACM_STATE] = 1;
	p->image.rdmacms = calloc(1, sizeof(p->image.rdmacms[0]));
	assert_non_null(p->image.rdmacms);
	p->image.rdmacms[0].n_states = 1;
	p->image.n[CHECKPOINT_RDMACM] = 1;
	p->device.file = p->file;
	p->rebuilt = (struct rebuilt){.image = &p->image, .devices = &p->device};
}

static void close_process(struct process *p)
{
	fd_remove(p->fd);
	close(p->fd);
	close(atomic_load(&event_socket));
	assert_int_equal(pthread_join(p->server, NULL), 0);
	free(p->image.rdmacms);
	on_command = NULL;
}

/* --- Another thread */

struct user {
	int fd;
	atomic_int tid;
	atomic_bool done;
};

static void *create_id(void *arg)
{
	struct user *u = arg;
	struct rdma_ucm_create_id_resp resp;
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		struct rdma_ucm_create_id create;
	} c = {.hdr = {.cmd = RDMA_USER_CM_CMD_CREATE_ID,
		       .in = sizeof(c.create),
		       .out = sizeof(resp)},
	       .create = {.uid = UID, .response = (uintptr_t)&resp, .ps = RDMA_PS_TCP}};

	atomic_store(&u->tid, (int)syscall(SYS_gettid));
	assert_int_equal(rdmacm_write(rdmacm_lookup(u->fd), u->fd, &c, sizeof(c)), sizeof(c));
	atomic_store(&u->done, true);
	return NULL;
}

/* A thread that gives a command early waits: it must not hold the device when urxed is to go on
 * with the IDs. If urxed stands still then, the holder may never end. */
static void a_command_waits_until_urxed_goes_on_with_the_ids(void **state)
{
	struct process p;
	struct user u = {0};
	pthread_t thread;

	(void)state;
	open_process(&p);
	assert_int_equal(rdmacm_restore(&p.rebuilt), 0);
	u.fd = p.fd;
	assert_int_equal(pthread_create(&thread, NULL, create_id, &u), 0);
	while (!atomic_load(&u.done) && sleeps_in(atomic_load(&u.tid)) != SYS_futex)
		sched_yield();
	rdmacm_restored(&p.rebuilt);
	assert_int_equal(pthread_join(thread, NULL), 0);
	await_commands(3);
	assert_int_equal(commands[0], CM_ATTACH_RESTORE);
	assert_int_equal(commands[1], CM_ATTACH_THAW);
	assert_int_equal(commands[2], RDMA_USER_CM_CMD_CREATE_ID);
	close_process(&p);
}

/* If the restoration fails, the caller can close the device. */
static void an_aborted_restoration_releases_the_device(void **state)
{
	struct process p;
	struct user u = {0};

	(void)state;
	open_process(&p);
	assert_int_equal(rdmacm_restore(&p.rebuilt), 0);
	rdmacm_restore_abort(&p.rebuilt);
	u.fd = p.fd;
	create_id(&u);
	await_commands(2);
	assert_int_equal(commands[1], RDMA_USER_CM_CMD_CREATE_ID);
	close_process(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_command_waits_until_urxed_goes_on_with_the_ids),
		cmocka_unit_test(an_aborted_restoration_releases_the_device),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
