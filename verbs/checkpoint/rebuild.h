/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Makes contexts, channels and objects of an image. They are not part of the adapter yet, and have
 * no objects of the engine: join.c joins them. adapter.lock must not be held in rebuild_objects and
 * rebuild_free.
 */
#ifndef URXE_VERBS_CHECKPOINT_REBUILD_H
#define URXE_VERBS_CHECKPOINT_REBUILD_H

#include "checkpoint/image/image.h"
#include "objects/handle.h"

struct comp_channel;
struct rdmacm_file;
struct uverbs_file;

struct rebuilt_channel {
	struct comp_channel *channel;
	int fd; /* the program's end of the channel, until placement_install places it; -1: none */
};

struct rebuilt_context {
	struct uverbs_file *file;
	int memfd; /* until placement_install places it; -1: none */
};

/* An open rdma_cm device. placement.c opens it. */
struct rebuilt_device {
	struct rdmacm_file *file;
	int fd; /* until placement_install places it; -1: none */
};

/* A memory region or window, and its key when it was saved. */
struct rebuilt_key {
	uint32_t key;
	struct object *object;
};

/* All 0 before rebuild_contexts. */
struct rebuilt {
	const struct image *image;
	struct rebuilt_channel *channels;
	struct rebuilt_context *contexts;
	struct rebuilt_device *devices;
	/* The regions and windows of all contexts; rebuild_objects sorts them by their keys. */
	struct rebuilt_key *mrs, *mws;
	uint64_t slots;           /* sum of the sizes of all handle tables; rebuild.c limits it */
	uint32_t fork_generation; /* adapter_fork_generation in rebuild_contexts */
};

/*
 * Makes the contexts and channels. `image` lives as long as *r. 0, -EBADMSG or another negative
 * errno value; after an error the caller calls rebuild_free.
 */
int rebuild_contexts(struct rebuilt *r, const struct image *image);
/* Makes the objects of the contexts. Their rings are mapped already; the function does not access
 * them. Errors as rebuild_contexts. */
int rebuild_objects(struct rebuilt *r);
/* After an error: frees the contexts, channels and objects, which are not in the adapter. The
 * caller has destroyed the engine's objects before, and unmaps the rings. */
void rebuild_free(struct rebuilt *r);
/* After success: frees the lists of *r; the contexts and objects belong to the adapter. */
void rebuild_done(struct rebuilt *r);

/* The object of that type and handle, or the region or window of that key. NULL: there is none. */
struct object *rebuilt_object(const struct rebuilt *r, enum object_type type, uint32_t context,
			      uint32_t handle);
struct object *rebuilt_mr(const struct rebuilt *r, uint32_t key);
struct object *rebuilt_mw(const struct rebuilt *r, uint32_t key);

#endif
