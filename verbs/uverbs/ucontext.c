/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "uverbs/ucontext.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "adapter/adapter.h"
#include "attach/attach.h"
#include "objects/settle.h"
#include "objects/verbs_ah.h"
#include "objects/verbs_mr.h"
#include "objects/verbs_mw.h"
#include "objects/verbs_pd.h"
#include "poll/engine_run.h"
#include "process/log.h"
#include "queues/verbs_cq.h"
#include "queues/verbs_qp.h"
#include "queues/verbs_srq.h"
#include "requests/daemon_requests.h"
#include "requests/told_qp_requests.h"
#include "uverbs/device_max.h"

/* Size of a context's memfd in bytes, a multiple of the page size. The file is sparse: only rings
 * take memory. */
#define MEMFD_SIZE ((uint64_t)1 << 44)

static struct uverbs_file_list unused = LIST_HEAD_INITIALIZER(unused);

static void flush_acks(struct uverbs_file *file)
{
	struct object *object;
	uint32_t at = 0;

	while ((object = handle_next(&file->handles, OBJECT_QP, &at)))
		engine_flush_acks((struct qp *)object);
}

/* Destroys all objects of the context, each before those that it refers to. */
static void destroy_objects(struct uverbs_file *file)
{
	static const struct {
		enum object_type type;
		void (*destroy)(struct object *object);
	} order[] = {
		{OBJECT_QP, qp_destroy}, {OBJECT_AH, ah_destroy}, {OBJECT_SRQ, srq_destroy},
		{OBJECT_CQ, cq_destroy}, {OBJECT_MW, mw_destroy}, {OBJECT_MR, mr_destroy},
		{OBJECT_PD, pd_destroy},
	};

	for (unsigned int i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		struct object *object;
		uint32_t at = 0;

		while ((object = handle_next(&file->handles, order[i].type, &at)))
			order[i].destroy(object);
	}
	handle_table_free(&file->handles);
}

void uverbs_file_free(struct uverbs_file *file)
{
	adapter_lock();
	LIST_INSERT_HEAD(&unused, file, link);
	adapter_unlock();
}

static void close_context(struct uverbs_file *file)
{
	const uint32_t generation = file->fork_generation;

	adapter_lock();
	if (!file->was_live) {
		LIST_INSERT_HEAD(&unused, file, link);
		adapter_unlock();
		return;
	}
	adapter_defer_destruction();
	flush_acks(file);
	destroy_objects(file);
	ring_space_close(&file->queues);
	LIST_REMOVE(file, link);
	comp_channels_end(file);
	if (file->async) {
		comp_channel_end(file->async);
		comp_channel_put(file->async);
	}
	LIST_INSERT_HEAD(&unused, file, link);
	adapter_unlock_settled();
	adapter_apply_multicast();
	told_qp_flush();
	adapter_unref(generation);
}

bool uverbs_file_get(struct uverbs_file *file)
{
	unsigned int users = atomic_load(&file->users);

	while (users)
		if (atomic_compare_exchange_weak(&file->users, &users, users + 1))
			return true;
	return false;
}

void uverbs_file_put(struct uverbs_file *file)
{
	if (atomic_fetch_sub(&file->users, 1) == 1)
		close_context(file);
}

/* fd_object.release: the program has closed the context's last descriptor. Destroys the context's
 * objects; if another thread still runs a command, that thread destroys them (uverbs_file_put). */
static void release_file(struct fd_object *object)
{
	struct uverbs_file *file = (struct uverbs_file *)object;

	adapter_lock();
	file->was_live = file->live;
	file->live = false;
	adapter_unlock();
	uverbs_file_put(file);
}

struct uverbs_file *uverbs_file_alloc(void)
{
	struct uverbs_file *file;

	adapter_lock();
	file = LIST_FIRST(&unused);
	if (file)
		LIST_REMOVE(file, link);
	adapter_unlock();
	if (!file)
		file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	atomic_store(&file->users, 1);
	file->fd.kind = FD_UVERBS;
	file->fd.release = release_file;
	file->handles = (struct handle_table){.counts = handle_counts, .max = device_max_objects};
	file->async = NULL;
	file->poll_cq = NULL;
	file->post_recv = NULL;
	file->post_srq_recv = NULL;
	file->start_poll = NULL;
	file->next_poll = NULL;
	file->end_poll = NULL;
	file->poll_ends = 0;
	return file;
}

/* The size of the memfd in bytes: MEMFD_SIZE, or RLIMIT_FSIZE if that is lower. For a memfd above
 * that limit the kernel raises SIGXFSZ. */
static uint64_t memfd_size(void)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur >= MEMFD_SIZE)
		return MEMFD_SIZE;
	return limit.rlim_cur & ~(page - 1);
}

int uverbs_file_memfd(int flags, uint64_t size)
{
	int fd = memfd_create(VNIC_UVERBS_NAME, flags & O_CLOEXEC ? MFD_CLOEXEC : 0);

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)size)) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	return fd;
}

/* Adds the context to adapter.files, and sets file->live. False, without effect: a signal handler
 * has forked since adapter_open(), this is the child, and the adapter is the parent's. */
static bool add_context(struct uverbs_file *file)
{
	bool is_own;

	adapter_lock();
	is_own = file->fork_generation == adapter_fork_generation;
	file->live = is_own;
	if (is_own)
		LIST_INSERT_HEAD(&adapter.files, file, link);
	adapter_unlock();
	return is_own;
}

void uverbs_log_open_error(int rc)
{
	static atomic_bool written;

	if (!atomic_exchange(&written, true))
		log_write("cannot open the device: %s", strerror(-rc));
}

/* Creates a context, and returns its descriptor. After an error ends the use of the adapter that
 * adapter_open() has counted, and returns a negative errno value. */
static int make_context(int flags, uint32_t generation)
{
	const uint64_t size = memfd_size();
	int fd = uverbs_file_memfd(flags, size), rc;
	struct uverbs_file *file;

	if (fd < 0) {
		adapter_unref(generation);
		return fd;
	}
	file = uverbs_file_alloc();
	if (!file) {
		close(fd);
		adapter_unref(generation);
		return -ENOMEM;
	}
	file->queues = (struct ring_space){.top = size};
	file->fork_generation = generation;
	if (!add_context(file)) {
		close(fd);
		uverbs_file_free(file);
		return -EIO;
	}
	rc = fd_install(fd, &file->fd);
	if (rc) {
		release_file(&file->fd);
		close(fd);
		return rc;
	}
	return fd;
}

int uverbs_file_open(int flags)
{
	uint32_t generation;
	int rc = adapter_open(&generation);

	if (rc)
		return rc;
	rc = make_context(flags, generation);
	if (rc < 0)
		uverbs_log_open_error(rc);
	return rc;
}
