/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "poll/poll_hook.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>

#include <infiniband/verbs.h>

#include "adapter/adapter.h"
#include "engine/clock.h"
#include "memory/uaccess.h"
#include "objects/uverbs_file.h"
#include "poll/polling.h"
#include "queues/verbs_cq.h"

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct uverbs_file *file = uverbs_file_of_hook(cq->context->cmd_fd);
	uint64_t now;
	int found;

	if (!file || !file->poll_cq)
		return -1;
	found = file->poll_cq(cq, n, wc);
	now = clock_now();
	if (!found && polling_empty(file, cq->handle, &now))
		found = file->poll_cq(cq, n, wc);
	if (found)
		polling_found(now);
	return found;
}

/*
 * Which function of librxe consumes the last entry of a poll. In rdma-core 44, ibv_next_poll does,
 * and ends the poll when it finds no further entry. The manual asks programs to call ibv_end_poll
 * then. In that release it would skip an entry that has not come yet, and unlock a lock that is not
 * held. So the hook does not pass that call to librxe. In rdma-core 65, ibv_end_poll consumes the
 * last entry. The hook finds out at the first poll, by the ring's consumer index.
 */
enum poll_ends { POLL_ENDS_UNKNOWN, POLL_ENDS_BY_NEXT, POLL_ENDS_BY_END };

/*
 * Marks for the polls of this thread that ibv_next_poll has ended, and ibv_end_poll has not yet.
 * The program may poll several CQs at once; the ninth replaces the oldest mark.
 */
#define ENDED_MAX 8

static __thread struct {
	const struct ibv_cq_ex *cqs[ENDED_MAX];
	unsigned int n; /* number of marks made so far */
} ended;

static void mark_ended(const struct ibv_cq_ex *cq)
{
	ended.cqs[ended.n++ % ENDED_MAX] = cq;
}

/* Removes this thread's mark that ibv_next_poll has ended a poll of the CQ. False: there is none.
 */
static bool unmark_ended(const struct ibv_cq_ex *cq)
{
	for (unsigned int i = 0; i < ENDED_MAX; i++) {
		if (ended.cqs[i] != cq)
			continue;
		ended.cqs[i] = NULL;
		return true;
	}
	return false;
}

static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	struct uverbs_file *file = uverbs_file_of_hook(cq->context->cmd_fd);
	uint64_t now;
	int rc;

	if (!file || !file->start_poll)
		return EIO;
	unmark_ended(cq);
	rc = file->start_poll(cq, attr);
	now = clock_now();
	if (rc == ENOENT && polling_empty(file, cq->handle, &now))
		rc = file->start_poll(cq, attr);
	if (rc == 0)
		polling_found(now);
	return rc;
}

/* Calls librxe's ibv_next_poll and returns its result. If that has found no further entry, sets
 * file->poll_ends by the ring. Holds adapter.lock, so that no completion comes in between. */
static int first_next_poll(struct uverbs_file *file, struct ibv_cq_ex *cq_ex)
{
	const struct cq *cq;
	int rc;

	adapter_lock();
	cq = (struct cq *)handle_find(&file->handles, OBJECT_CQ, cq_ex->handle);
	rc = file->next_poll(cq_ex);
	if (rc && cq)
		file->poll_ends = queue_consumer(&cq->ring) == queue_producer(&cq->ring)
					  ? POLL_ENDS_BY_NEXT
					  : POLL_ENDS_BY_END;
	adapter_unlock();
	return rc;
}

static int next_poll(struct ibv_cq_ex *cq)
{
	struct uverbs_file *file = uverbs_file_of_hook(cq->context->cmd_fd);
	int rc;

	if (!file || !file->next_poll)
		return EIO;
	rc = file->poll_ends == POLL_ENDS_UNKNOWN ? first_next_poll(file, cq) : file->next_poll(cq);
	if (rc && file->poll_ends != POLL_ENDS_BY_END)
		mark_ended(cq);
	return rc;
}

static void end_poll(struct ibv_cq_ex *cq)
{
	struct uverbs_file *file = uverbs_file_of_hook(cq->context->cmd_fd);

	if (!unmark_ended(cq) && file && file->end_poll)
		file->end_poll(cq);
}

bool poll_hook_read_context(uint64_t user_handle, struct ibv_context *context, uint64_t *at)
{
	struct ibv_cq cq;

	if (uaccess_read(&cq, user_handle, sizeof(cq)))
		return false;
	*at = (uint64_t)(uintptr_t)cq.context;
	return !uaccess_read(context, *at, sizeof(*context));
}

void poll_hook_install(struct uverbs_file *file, int fd, uint64_t user_handle)
{
	int (*hook)(struct ibv_cq *, int, struct ibv_wc *) = poll_cq;
	struct ibv_context context;
	uint64_t at;

	if (!poll_hook_read_context(user_handle, &context, &at) || context.cmd_fd != fd ||
	    !context.ops.poll_cq || context.ops.poll_cq == poll_cq)
		return;
	/* The program has put its own function around the hook. That function calls the hook, so
	 * the hook must not call it. */
	if (file->poll_cq && context.ops.poll_cq != file->poll_cq)
		return;
	file->poll_cq = context.ops.poll_cq;
	uverbs_file_publish_hooks();
	uaccess_write(at + offsetof(struct ibv_context, ops.poll_cq), &hook, sizeof(hook));
}

/*
 * Whether both functions are of one library: a function that this file finds in the program's
 * memory counts as librxe's only if librxe's poll_cq is of the same library. Does not use dladdr(),
 * which takes the dynamic linker's lock: the caller holds adapter.lock, and the holder of that lock
 * may wait for adapter.lock, in a constructor that makes a verbs call.
 */
static bool same_library(void *a, void *b)
{
	struct dl_find_object of_a, of_b;

	return !_dl_find_object(a, &of_a) && !_dl_find_object(b, &of_b) &&
	       of_a.dlfo_map_start == of_b.dlfo_map_start;
}

bool poll_hook_is_installed(const struct uverbs_file *file, uint64_t user_handle)
{
	struct ibv_context context;
	uint64_t at;

	return poll_hook_read_context(user_handle, &context, &at) &&
	       context.ops.poll_cq == poll_cq &&
	       same_library((void *)context.ops.post_send, (void *)file->poll_cq);
}

void poll_hook_install_ex(struct cq *cq)
{
	const uint64_t at = cq->object.user_handle;
	struct uverbs_file *file = cq->object.file;
	struct ibv_cq_ex ex;

	if (cq->ex_known || !file->poll_cq)
		return;
	cq->ex_known = true;
	if (uaccess_read(&ex, at, sizeof(ex)) || !ex.start_poll || ex.start_poll == start_poll ||
	    !same_library((void *)ex.start_poll, (void *)file->poll_cq))
		return;
	file->start_poll = ex.start_poll;
	file->next_poll = ex.next_poll;
	file->end_poll = ex.end_poll;
	uverbs_file_publish_hooks();
	ex.start_poll = start_poll;
	ex.next_poll = next_poll;
	ex.end_poll = end_poll;
	uaccess_write(at + offsetof(struct ibv_cq_ex, start_poll), &ex.start_poll,
		      sizeof(ex.start_poll));
	uaccess_write(at + offsetof(struct ibv_cq_ex, next_poll), &ex.next_poll,
		      sizeof(ex.next_poll));
	uaccess_write(at + offsetof(struct ibv_cq_ex, end_poll), &ex.end_poll, sizeof(ex.end_poll));
}
