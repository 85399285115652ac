/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The stream of a saved process (verbs/checkpoint/). The input is a stream; the target corrects its
 * header and the header of the engine's stream in it, unless the last byte is odd. A stream that is
 * refused leaves nothing behind: no descriptor, mapping, registered page or object. An accepted one
 * is joined with an engine and a port without a daemon, and then dropped. Each file of the corpus
 * has to be joined.
 */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <isa-l/crc.h>
#include <rxe/state.h>

#include "adapter/adapter.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/image/image.h"
#include "checkpoint/join.h"
#include "checkpoint/placement.h"
#include "checkpoint/rebuild.h"
#include "engine/crc.h"
#include "memory/mr_index.h"
#include "poll/poll_hook.h"
#include "process/emulated_fd.h"
#include "queues/verbs_cq.h"
#include "require.h"

#define STREAM_MAX 65536
#define MAX_BYTES  (16u << 20)
#define HEADER_LEN 24

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
bool fuzz_accepted(void);
bool __wrap_uaccess_is_mapped(uint64_t start, uint64_t length);
bool __wrap_poll_hook_is_installed(const struct uverbs_file *file, uint64_t user_handle);

static bool joined; /* the last input was */

bool fuzz_accepted(void)
{
	return joined;
}

/* The registered memory of the corpus exists, but nobody accesses it. */
bool __wrap_uaccess_is_mapped(uint64_t start, uint64_t length)
{
	return start >> 44 == 2 && length < 1u << 30;
}

/* So do the objects of librxe. */
bool __wrap_poll_hook_is_installed(const struct uverbs_file *file, uint64_t user_handle)
{
	(void)file, (void)user_handle;
	return true;
}

/* --- The engine's operations. */

static bool complete(void *ctx, const struct urxe_wc *wc)
{
	return cq_add(ctx, wc);
}

static void ignore_event(void *dev_ctx, enum urxe_async event, void *ctx)
{
	(void)dev_ctx, (void)event, (void)ctx;
}

static void refill_nothing(void *ctx)
{
	(void)ctx;
}

static const struct urxe_ops ops = {
	.complete = complete,
	.comp_event = cq_comp_event,
	.refill = refill_nothing,
	.async_event = ignore_event,
};

/* --- Right headers, so that mutations get behind them. */

static void put(uint8_t *to, uint64_t value, int n)
{
	for (int i = 0; i < n; i++)
		to[i] = (uint8_t)(value >> 8 * i);
}

/* A version from 1 to `versions` stays as it was. */
static void correct_header(uint8_t *stream, size_t length, const char *magic, uint32_t versions)
{
	uint32_t crc;

	if (length < HEADER_LEN)
		return;
	memcpy(stream, magic, 8);
	put(stream + 8, 1 + (stream[8] + versions - 1) % versions, 4);
	put(stream + 16, length, 8);
	crc = crc32_gzip_refl(0, stream, 12);
	put(stream + 12, crc32_gzip_refl(crc, stream + 16, length - 16), 4);
}

/* The engine's stream is found by its magic. */
static void correct_engine(uint8_t *stream, size_t length)
{
	for (size_t at = HEADER_LEN + 8; at + HEADER_LEN < length; at++) {
		uint64_t n = 0;

		if (memcmp(stream + at, "urxestat", 8))
			continue;
		memcpy(&n, stream + at - 8, 8);
		if (n <= length - at)
			correct_header(stream + at, (size_t)n, "urxestat", URXE_STATE_VERSION);
		return;
	}
}

/* --- A port without a daemon. */

static void open_port(const struct image *image)
{
	TAILQ_INIT(&adapter.dirty_cqs);
	TAILQ_INIT(&adapter.dirty_qps);
	LIST_INIT(&adapter.flushing_qps);
	memcpy(adapter.welcome.port.gids, image->process.gids, sizeof(image->process.gids));
	for (uint32_t i = 0; i < image->process.n_blocks; i++) {
		struct lease_block *block = calloc(1, sizeof(*block));
		uint32_t qpn = image->process.blocks[i];

		require(block);
		block->qpn_first = qpn;
		if (adapter.leases.by_qpn[qpn >> VNIC_LEASE_SHIFT])
			free(block); /* a daemon does not lease a block twice */
		else
			leases_add(&adapter.leases, block);
	}
}

static void close_port(void)
{
	if (adapter.dev)
		urxe_dev_destroy(adapter.dev);
	adapter.dev = NULL;
	leases_clear(&adapter.leases);
}

static int restore_engine(const struct image *image, struct joining *joining)
{
	struct urxe_state_restore how = join_callbacks(joining);
	struct urxe_state_attr state;
	int rc = urxe_state_read_attr(image->engine.at, image->engine.length, &state);

	if (rc)
		return rc;
	how.max_bytes = MAX_BYTES;
	state.attr.ops = &ops;
	return urxe_state_restore(&state.attr, 1, &how, image->engine.at, image->engine.length,
				  &adapter.dev);
}

/* The daemon's P_Keys are those of the saved process. */
static void copy_pkeys(void)
{
	for (uint32_t i = 0; i < VNIC_ATTACH_PKEYS; i++)
		adapter.welcome.pkeys[i] = urxe_pkey(adapter.dev, i);
}

static void join(struct rebuilt *rebuilt)
{
	struct joining joining = {.rebuilt = rebuilt};

	open_port(rebuilt->image);
	if (!restore_engine(rebuilt->image, &joining)) {
		adapter_lock();
		copy_pkeys();
		joined = !join_add_objects(&joining);
		join_undo(&joining);
		adapter_unlock();
	}
	close_port();
}

static void restore(const struct image *image)
{
	struct placement placement = {.image = image};
	struct rebuilt rebuilt = {0};
	int rc = rebuild_contexts(&rebuilt, image);

	if (!rc)
		rc = placement_map(&placement, &rebuilt);
	if (!rc)
		rc = rebuild_objects(&rebuilt);
	if (!rc)
		join(&rebuilt);
	rebuild_free(&rebuilt);
	placement_undo(&placement);
}

static uint32_t count_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	uint32_t n = 0;

	require(folder);
	while (readdir(folder))
		n++;
	closedir(folder);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t stream[STREAM_MAX];
	static bool started;
	struct image image;
	uint32_t descriptors;

	if (!size || size > sizeof(stream))
		return 0;
	if (!started) {
		fd_set_owner();
		require(!crc_load());
		started = true;
	}
	joined = false;
	descriptors = count_descriptors();
	memcpy(stream, data, size);
	if (stream[size - 1] % 2 == 0) {
		correct_engine(stream, size);
		correct_header(stream, size, "urxeproc", URXE_CHECKPOINT_VERSION);
	}
	if (!image_read(&image, stream, size)) {
		restore(&image);
		image_free(&image);
	}
	require(!atomic_load(&fd_emulated) && !mr_index_any() && LIST_EMPTY(&adapter.files));
	require(LIST_EMPTY(&adapter.remote_qps) && count_descriptors() == descriptors);
	return 0;
}
