/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Writes the objects of this process to a stream. capture_prepare allocates everything;
 * capture_save allocates nothing and takes no lock. The lock of the port is held from before
 * capture_prepare until after capture_free.
 */
#ifndef URXE_VERBS_CHECKPOINT_CAPTURE_H
#define URXE_VERBS_CHECKPOINT_CAPTURE_H

#include <stddef.h>
#include <stdint.h>

struct comp_channel;
struct uverbs_file;

/* All 0 before capture_prepare. */
struct capture {
	struct uverbs_file **files;
	uint32_t n_files;
	struct comp_channel **channels;
	uint32_t n_channels;
	uint8_t *engine; /* stream of urxe_state_save */
	size_t engine_length;
	uint8_t *buffer;
	size_t room;
};

/*
 * Saves the engine as it is at `now`, and makes room for the stream. -EBUSY: not now, see
 * urxe_state_save; -EOPNOTSUPP: an object cannot be saved; -ENOMEM. After an error the caller calls
 * capture_free, and urxe_direct_publish.
 */
int capture_prepare(struct capture *c, uint64_t now);
/* Writes the stream to the descriptor. -EBUSY: the room is too small. */
int capture_save(const struct capture *c, int fd);
void capture_free(struct capture *c);

#endif
