/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Makes contexts, channels and objects of an image. They are not part of the adapter yet, and have
 * no objects of the engine: checkpoint_restore.c joins them. adapter.lock must not be held, unless
 * said otherwise.
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
	int fd; /* of the program's end, until the descriptors are placed; -1: none */
};

struct rebuilt_context {
	struct uverbs_file *file;
	int memfd; /* until the descriptors are placed; -1: none */
};

/* An open rdma_cm device. placement.c opens it. */
struct rebuilt_device {
	struct rdmacm_file *file;
	int fd; /* until the descriptors are placed; -1: none */
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
	/* Of all contexts, sorted by their keys. */
	struct rebuilt_key *mrs, *mws;
	uint64_t slots; /* sum of the sizes of all handle tables; rebuild.c limits it */
};

/* Both: 0, -EBADMSG or another error; then the caller calls rebuild_free. */
int rebuild_contexts(struct rebuilt *r, const struct image *image);
/* The objects of the contexts, whose rings are mapped already. Does not access the rings. */
int rebuild_objects(struct rebuilt *r);
/* Frees the contexts, channels and objects that join_port has not added to the adapter. The caller
 * has freed the engine's objects, and unmaps the rings. */
void rebuild_free(struct rebuilt *r);
/* Frees the lists; the objects belong to the adapter. */
void rebuild_done(struct rebuilt *r);

/* NULL: none. */
struct object *rebuilt_object(const struct rebuilt *r, enum object_type type, uint32_t context,
			      uint32_t handle);
struct object *rebuilt_mr(const struct rebuilt *r, uint32_t key);
struct object *rebuilt_mw(const struct rebuilt *r, uint32_t key);

#endif
