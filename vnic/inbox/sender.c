/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sends frames to an inbox. A sender may stop for ever after any instruction of this file, and the
 * next sender must be able to continue. Therefore a single store commits a frame (the generation
 * bit of its completion), and every step before or behind it can be repeated or omitted.
 */
#include <vnic/inbox.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "eventfd.h"
#include "layout.h"
#include "lock.h"
#include "message.h"
#include "shared.h"

struct vnic_outbox {
	struct inbox_memory *memory;
	const void *published;
	uint64_t size;
	uint32_t self;
	uint32_t stride;
	uint32_t frame_max;
	uint32_t last;     /* position up to which slots are free, as last read */
	uint32_t reserved; /* position of the first reserved slot */
	int wake_fd;
};

/* Reads up to which position the receiver has given slots back. Acquire: the receiver has read
 * these slots before. */
static void read_room(struct vnic_outbox *outbox)
{
	outbox->last = vnic_acquire(&outbox->memory->room) - 1;
}

static int map_inbox(struct vnic_outbox *outbox, const int fds[VNIC_INBOX_FDS])
{
	void *memory;
	int ret = vnic_memory_map(fds[VNIC_INBOX_MEMORY], outbox->size, &memory);

	if (ret)
		return ret;
	outbox->memory = memory;
	return vnic_memory_map_published(fds[VNIC_INBOX_PUBLISHED], VNIC_INBOX_PUBLISHED_SIZE,
					 &outbox->published);
}

int vnic_outbox_open(const int fds[VNIC_INBOX_FDS], uint16_t mtu, uint32_t self,
		     struct vnic_outbox **outbox)
{
	struct vnic_outbox *b = malloc(sizeof(*b));
	int ret = -ENOMEM;

	if (b) {
		*b = (struct vnic_outbox){
			.size = inbox_size(mtu),
			.self = self,
			.stride = inbox_stride(mtu),
			.frame_max = VNIC_FRAME_MAX(mtu),
			.wake_fd = fds[VNIC_INBOX_WAKE],
		};
		ret = map_inbox(b, fds);
	}
	/* The mappings stay after their descriptors are closed. */
	close(fds[VNIC_INBOX_MEMORY]);
	close(fds[VNIC_INBOX_PUBLISHED]);
	if (!ret) {
		read_room(b);
		*outbox = b;
	} else if (b) {
		vnic_outbox_close(b);
	} else {
		close(fds[VNIC_INBOX_WAKE]);
	}
	return ret;
}

bool vnic_outbox_closed(const struct vnic_outbox *outbox)
{
	return vnic_load(&outbox->memory->lock) == INBOX_CLOSED;
}

/* close(2) is a cancellation point: a thread cancelled there would end with locks held. */
void vnic_outbox_close(struct vnic_outbox *outbox)
{
	int cancel;

	if (outbox->memory)
		munmap(outbox->memory, outbox->size);
	if (outbox->published)
		munmap((void *)outbox->published, VNIC_INBOX_PUBLISHED_SIZE);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	close(outbox->wake_fd);
	pthread_setcancelstate(cancel, NULL);
	free(outbox);
}

void vnic_outbox_isolate(const struct vnic_outbox *outbox)
{
	vnic_memory_isolate(outbox->memory, outbox->size);
	vnic_memory_isolate(outbox->published, VNIC_INBOX_PUBLISHED_SIZE);
}

const void *vnic_outbox_published(const struct vnic_outbox *outbox)
{
	return outbox->published;
}

static struct inbox_slot *slot_at(const struct vnic_outbox *outbox, uint32_t position)
{
	return inbox_slot(outbox->memory, outbox->stride, position);
}

/*
 * The position of the next frame. A frame that a dead sender published without counting it is
 * counted first: this sender may die before it counts its own frame, too, and the next one looks
 * for one uncounted frame only.
 */
static uint32_t find_position(const struct vnic_outbox *outbox)
{
	uint32_t position = vnic_load(&outbox->memory->position), completion;

	if (inbox_completed(slot_at(outbox, position), position, &completion))
		vnic_store(&outbox->memory->position, ++position);
	return position;
}

/*
 * Prefetches the lines of a slot that a frame of len bytes needs, two at most, for writing. The
 * receiver has read them last. The lines of several slots arrive together as fast as one.
 */
static void prefetch_slot(const struct vnic_outbox *outbox, uint32_t position, uint32_t len)
{
	const struct inbox_slot *slot = slot_at(outbox, position);

	vnic_prefetch_write(slot);
	if (!inbox_one_line(len))
		vnic_prefetch_write(slot->frame + CACHE_LINE);
}

/* Whether the slot at a position was free at the last read_room(). Since that time other senders
 * may have sent any number of frames, so `position` may have passed outbox->last by far. */
static bool has_room(const struct vnic_outbox *outbox, uint32_t position)
{
	return outbox->last - position < VNIC_INBOX_FRAMES;
}

/* The slot of a position; NULL: the receiver has not given it back. */
static struct inbox_slot *free_slot(struct vnic_outbox *outbox, uint32_t position)
{
	if (!has_room(outbox, position))
		read_room(outbox);
	return has_room(outbox, position) ? slot_at(outbox, position) : NULL;
}

/*
 * Writes the frame's payload reference behind its pieces; returns the slot's completion without a
 * generation.
 */
static uint32_t put_reference(struct inbox_slot *slot, const struct vnic_frame *frame)
{
	const uint32_t bytes = vnic_frame_bytes(frame);

	if (!frame->reference.length)
		return frame->len;
	memcpy(slot->frame + bytes, &frame->reference, sizeof(frame->reference));
	return (bytes + (uint32_t)sizeof(frame->reference)) | INBOX_REFERENCE;
}

/* Commits the frame in the slot of a position. */
static void commit_slot(const struct vnic_outbox *outbox, uint32_t position,
			const struct vnic_frame *frame)
{
	struct inbox_slot *slot = slot_at(outbox, position);
	uint32_t completion = put_reference(slot, frame);

	/* Release: a receiver that sees the generation bit sees the frame. */
	vnic_publish(&slot->completion, (uint16_t)(completion | inbox_gen(position)));
	vnic_publish(&outbox->memory->position, position + 1);
}

static bool put_frame(struct vnic_outbox *outbox, uint32_t position, const struct vnic_frame *frame)
{
	struct inbox_slot *slot = free_slot(outbox, position);

	if (!slot)
		return false;
	memcpy(slot->frame, frame->data, vnic_frame_bytes(frame));
	commit_slot(outbox, position, frame);
	return true;
}

/*
 * Called after a fence: the sender publishes completions before it reads the mask
 * (vnic_inbox_irq_unmask). It writes the eventfd before the mask: see INBOX_MASKED.
 */
static void wake_if_unmasked(const struct vnic_outbox *outbox)
{
	uint32_t *word = &outbox->memory->mask;
	uint32_t mask = vnic_load(word);

	if (mask & INBOX_MASKED || !vnic_eventfd_raise(outbox->wake_fd))
		return;
	__atomic_compare_exchange_n(word, &mask, mask | INBOX_MASKED, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
}

void vnic_outbox_wake(const struct vnic_outbox *outbox)
{
	vnic_fence();
	wake_if_unmasked(outbox);
}

/* Unlocks the inbox after n frames. If n is not 0, wakes the receiver, unless its interrupt is
 * masked. */
static void unlock_after(struct vnic_outbox *outbox, uint32_t n)
{
	inbox_unlock(outbox->memory, outbox->self);
	if (!n)
		return;
	vnic_fence_after_atomic();
	wake_if_unmasked(outbox);
}

uint32_t vnic_outbox_send(struct vnic_outbox *outbox, const struct vnic_frame *frames, uint32_t n,
			  enum vnic_outbox_status *status)
{
	uint32_t position, sent = 0;

	*status = inbox_lock(outbox->memory, outbox->self);
	if (*status != VNIC_OUTBOX_OK)
		return 0;
	position = find_position(outbox);
	for (uint32_t i = 0; i < n; i++)
		prefetch_slot(outbox, position + i, frames[i].len);
	while (sent < n && put_frame(outbox, position + sent, &frames[sent]))
		sent++;
	unlock_after(outbox, sent);
	/* The next frame is probably as long as the last one. */
	if (n)
		prefetch_slot(outbox, position + sent, frames[n - 1].len);
	if (sent < n)
		*status = VNIC_OUTBOX_FULL;
	return sent;
}

uint32_t vnic_outbox_reserve(struct vnic_outbox *outbox, struct vnic_frame *frames, uint32_t n)
{
	uint32_t position, count = 0;

	if (inbox_lock(outbox->memory, outbox->self) != VNIC_OUTBOX_OK)
		return 0;
	outbox->reserved = position = find_position(outbox);
	for (; count < n; count++, position++) {
		struct inbox_slot *slot = free_slot(outbox, position);

		if (!slot)
			break;
		/* A caller reserves several slots only for large frames. */
		prefetch_slot(outbox, position, n > 1 ? outbox->frame_max : 0);
		frames[count] = (struct vnic_frame){.data = slot->frame, .room = outbox->frame_max};
	}
	if (!count)
		inbox_unlock(outbox->memory, outbox->self);
	return count;
}

void vnic_outbox_commit(struct vnic_outbox *outbox, const struct vnic_frame *frames, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		commit_slot(outbox, outbox->reserved + i, &frames[i]);
	unlock_after(outbox, n);
}
