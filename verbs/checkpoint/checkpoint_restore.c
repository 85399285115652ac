/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "checkpoint/checkpoint_restore.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rxe/announcement.h>

#include "adapter/adapter.h"
#include "attach/attach.h"
#include "attach/fork.h"
#include "checkpoint/image/checkpoint_error.h"
#include "checkpoint/image/image.h"
#include "checkpoint/join.h"
#include "checkpoint/placement.h"
#include "checkpoint/rdmacm_restore.h"
#include "checkpoint/rebuild.h"
#include "engine/clock.h"
#include "engine/crc.h"
#include "poll/engine_run.h"
#include "poll/engine_wake.h"
#include "process/emulated_fd.h"
#include "queues/verbs_qp.h"
#include "requests/daemon_requests.h"

/* --- The stream. */

static int read_all(int fd, uint8_t **stream, size_t *length)
{
	size_t room = 1 << 20, at = 0;
	uint8_t *bytes = malloc(room), *grown;
	ssize_t n;

	while (bytes && (n = read(fd, bytes + at, room - at)) != 0) {
		if (n < 0 && errno != EINTR) {
			free(bytes);
			return checkpoint_fail(-errno, "cannot read the stream");
		}
		at += n > 0 ? (size_t)n : 0;
		if (at < room)
			continue;
		room *= 2;
		grown = realloc(bytes, room);
		if (!grown)
			free(bytes);
		bytes = grown;
	}
	*stream = bytes;
	*length = at;
	return bytes ? 0 : -ENOMEM;
}

/* --- The daemon. */

static int explain_busy(void)
{
	return checkpoint_fail(-EBUSY, "the process has an open device");
}

static int explain_attach_error(const struct process_record *process, uint32_t demanded, int rc)
{
	const uint8_t *was = process->mac, *is = adapter.welcome.mac;

	switch (rc) {
	case -EBUSY: return explain_busy();
	case -ETIMEDOUT: return checkpoint_fail(rc, "urxed does not answer");
	case -EEXIST:
		return checkpoint_fail(rc,
				       "another process of this host has the queue pair "
				       "numbers from %#x on",
				       demanded);
	case -EACCES:
		return checkpoint_fail(rc,
				       "a process of another user had the queue pair numbers "
				       "from %#x on",
				       demanded);
	case -EADDRNOTAVAIL:
		return checkpoint_fail(
			rc,
			"the device has the MAC address %02x:%02x:%02x:%02x:%02x:%02x, "
			"the saved one had %02x:%02x:%02x:%02x:%02x:%02x",
			is[0], is[1], is[2], is[3], is[4], is[5], was[0], was[1], was[2], was[3],
			was[4], was[5]);
	default: return checkpoint_explain(rc, "cannot attach to urxed, or restore the engine");
	}
}

/* No effect in a child that a signal handler has forked since adapter_restore_begin(): the child
 * has forgotten the adapter. */
static void undo(struct joining *j, const struct adapter_saved *saved)
{
	adapter_lock();
	if (saved->fork_generation == adapter_fork_generation)
		join_undo(j);
	adapter_unlock();
}

static int attach_restored_adapter(struct rebuilt *r)
{
	const struct image *image = r->image;
	struct joining joining = {.rebuilt = r};
	const struct urxe_state_restore how = join_callbacks(&joining);
	struct adapter_saved saved = {
		.blocks = image->process.blocks,
		.n_blocks = image->process.n_blocks,
		.up = image->process.up,
		.engine = image->engine.at,
		.engine_length = image->engine.length,
		.how = &how,
	};
	int rc;

	memcpy(saved.gids, image->process.gids, sizeof(saved.gids));
	rc = adapter_restore_begin(&saved);
	if (rc)
		return explain_attach_error(&image->process, saved.demanded, rc);
	adapter_lock();
	rc = join_add_objects(&joining);
	adapter_unlock();
	if (!rc && adapter_is_parents(saved.fork_generation))
		rc = checkpoint_fail(-EIO, "the process was forked meanwhile");
	if (!rc)
		rc = rdmacm_restore(r);
	if (rc) {
		adapter_restore_abort(&saved);
		undo(&joining, &saved);
		return checkpoint_explain(rc, "the stream contradicts itself");
	}
	rc = adapter_restore_end(&saved, image->n[CHECKPOINT_CONTEXT]);
	if (rc)
		undo(&joining, &saved);
	else
		rdmacm_restored(r);
	return checkpoint_explain(rc, "cannot start the engine");
}

/* --- Peers of this host. */

/*
 * Requests the inboxes of the peers of all connected queue pairs, as the transition to RTR does.
 * Copies to processes of this host need inboxes; without an inbox, frames go by the switch.
 */
static void request_inboxes(const struct image *image)
{
	for (uint32_t i = 0; i < image->n[CHECKPOINT_QP]; i++) {
		struct urxe_qp_attr attr;
		struct urxe_qp_init init;
		const struct qp *qp;

		if (!image->qps[i].connected)
			continue;
		adapter_lock();
		qp = leases_find(&adapter.leases, image->qps[i].qpn);
		if (qp)
			urxe_qp_query(qp->qp, &attr, &init);
		adapter_unlock();
		if (qp)
			adapter_request_inbox(attr.path.dmac, image->qps[i].remote_qpn);
	}
}

/* Tells the engine that this station was absent and is back (rxe/announcement.h): its queue pairs
 * repeat packets, because packets were lost in both directions since the checkpoint. */
static void repair_connections(void)
{
	uint8_t data[URXE_ANNOUNCEMENT_LEN];
	const struct urxe_frame frame = {.data = data, .len = sizeof(data)};
	const uint64_t now = clock_now();

	urxe_announcement_build(data, adapter.welcome.mac);
	adapter_lock();
	if (adapter_running()) {
		urxe_input(adapter.dev, now, &frame, 1);
		engine_run(now);
		engine_wake();
	}
	adapter_unlock();
}

/* --- The whole. */

static int restore_objects(struct rebuilt *r, struct placement *p, const struct image *image)
{
	int rc = rebuild_contexts(r, image);

	if (!rc)
		rc = placement_map(p, r);
	if (!rc)
		rc = rebuild_objects(r);
	if (rc)
		return checkpoint_explain(rc, "cannot make the objects of the stream");
	rc = checkpoint_explain(placement_install(p, r), "cannot place the descriptors");
	return rc ? rc : attach_restored_adapter(r);
}

static int restore_image(const struct image *image)
{
	struct rebuilt rebuilt = {0};
	struct placement placement;
	int rc;

	if (image->process.page_size != (uint32_t)sysconf(_SC_PAGESIZE))
		return checkpoint_fail(-EBADMSG, "the process had pages of %u bytes",
				       image->process.page_size);
	rc = checkpoint_explain(placement_reserve(&placement, image), "cannot reserve descriptors");
	if (!rc)
		rc = restore_objects(&rebuilt, &placement, image);
	if (rc) {
		if (rebuilt.image)
			rebuild_free(&rebuilt);
		placement_undo(&placement);
		return rc;
	}
	rebuild_done(&rebuilt);
	placement_done(&placement);
	request_inboxes(image);
	repair_connections();
	return 0;
}

int restore_process(int fd)
{
	struct image image;
	uint8_t *stream = NULL;
	size_t length = 0;
	int rc;

	if (adapter.dev)
		return explain_busy();
	/* Prepares for descriptors in the table of process/emulated_fd.c, and for forks. */
	adapter_enable_fork_handlers();
	fd_set_owner();
	rc = crc_load();
	if (!rc)
		rc = read_all(fd, &stream, &length);
	if (rc)
		return checkpoint_explain(rc, "cannot read the stream");
	rc = image_read(&image, stream, length);
	if (rc == -EPROTONOSUPPORT)
		checkpoint_fail(rc, "a later version of urxe has written the stream");
	else if (rc && !checkpoint_error_text()[0])
		checkpoint_fail(rc, rc == -ENOMEM ? "memory is short"
						  : "the stream is truncated or damaged");
	else if (!rc)
		rc = restore_image(&image);
	image_free(&image);
	free(stream);
	return rc;
}
