/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <vnic/inbox.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "layout.h"
#include "lock.h"
#include "message.h"
#include "shared.h"

/*
 * Number of slots that the receiver gives back at once if frames come one by one. A sender reads
 * inbox_memory.room only when it has used all slots that it knows of, but each write of `room`
 * moves a cache line.
 */
#define BATCH 16

struct vnic_inbox {
	struct inbox_memory *memory;
	void *published;
	uint64_t size;
	int fds[VNIC_INBOX_FDS];
	uint32_t frame_max;
	uint32_t stride;
	uint32_t next; /* position of the next frame */
	uint32_t taken;
	uint32_t released; /* released slots whose position is not published yet */
	bool more;         /* the last vnic_inbox_rx returned as many frames as were requested */
	uint32_t unmaskings;
	bool broken;
};

const char *vnic_bypass_counter_name(enum vnic_bypass_counter counter)
{
#define NAME(id, name, text) [VNIC_BYPASS_##id] = name,
	static const char *const names[] = {VNIC_BYPASS_LIST(NAME)};
#undef NAME
	return counter < VNIC_BYPASS_COUNT ? names[counter] : "unknown";
}

/* Tells senders up to which position slots are free. Release: the receiver's reads of slots end
 * before a sender may write to them again. */
static void publish_room(struct vnic_inbox *inbox)
{
	vnic_publish(&inbox->memory->room, inbox->next - inbox->taken + VNIC_INBOX_FRAMES);
}

static int map_shared(struct vnic_inbox *inbox)
{
	void *memory;
	int ret = vnic_memory_map(inbox->fds[VNIC_INBOX_MEMORY], inbox->size, &memory);

	if (ret)
		return ret;
	inbox->memory = memory;
	ret = vnic_memory_map(inbox->fds[VNIC_INBOX_PUBLISHED], VNIC_INBOX_PUBLISHED_SIZE, &memory);
	if (!ret)
		inbox->published = memory;
	return ret;
}

int vnic_inbox_open(const int fds[VNIC_INBOX_FDS], uint16_t mtu, struct vnic_inbox **inbox)
{
	struct vnic_inbox *b = calloc(1, sizeof(*b));
	int ret;

	if (!b) {
		vnic_close_fds(fds, VNIC_INBOX_FDS);
		return -ENOMEM;
	}
	memcpy(b->fds, fds, sizeof(b->fds));
	b->size = inbox_size(mtu);
	b->stride = inbox_stride(mtu);
	b->frame_max = VNIC_FRAME_MAX(mtu);
	ret = map_shared(b);
	if (ret) {
		vnic_inbox_abandon(b);
		return ret;
	}
	vnic_inbox_irq_mask(b);
	publish_room(b);
	*inbox = b;
	return 0;
}

int vnic_inbox_publish(const struct vnic_inbox *inbox)
{
	return vnic_memory_publish(inbox->fds[VNIC_INBOX_PUBLISHED]);
}

void vnic_inbox_abandon(struct vnic_inbox *inbox)
{
	if (!inbox)
		return;
	if (inbox->memory)
		munmap(inbox->memory, inbox->size);
	if (inbox->published)
		munmap(inbox->published, VNIC_INBOX_PUBLISHED_SIZE);
	vnic_close_fds(inbox->fds, VNIC_INBOX_FDS);
	free(inbox);
}

void vnic_inbox_isolate(const struct vnic_inbox *inbox)
{
	if (!inbox)
		return;
	vnic_memory_isolate(inbox->memory, inbox->size);
	vnic_memory_isolate(inbox->published, VNIC_INBOX_PUBLISHED_SIZE);
}

bool vnic_inbox_lock(struct vnic_inbox *inbox, uint32_t self)
{
	return inbox_lock(inbox->memory, self) == VNIC_OUTBOX_OK;
}

void vnic_inbox_unlock(struct vnic_inbox *inbox, uint32_t self)
{
	inbox_unlock(inbox->memory, self);
}

void vnic_inbox_close(struct vnic_inbox *inbox)
{
	vnic_store(&inbox->memory->lock, INBOX_CLOSED);
}

void vnic_inbox_destroy(struct vnic_inbox *inbox)
{
	if (inbox)
		vnic_inbox_close(inbox);
	vnic_inbox_abandon(inbox);
}

void vnic_inbox_fds(const struct vnic_inbox *inbox, int fds[VNIC_INBOX_FDS])
{
	for (int i = 0; i < VNIC_INBOX_FDS; i++)
		fds[i] = inbox->fds[i];
}

void *vnic_inbox_published(const struct vnic_inbox *inbox)
{
	return inbox->published;
}

void vnic_inbox_populate(const struct vnic_inbox *inbox)
{
	/* Before Linux 5.14, or without free memory, each frame populates its own page. */
	madvise(inbox->memory, inbox->size, MADV_POPULATE_WRITE);
}

static struct inbox_slot *slot_at(const struct vnic_inbox *inbox, uint32_t position)
{
	return inbox_slot(inbox->memory, inbox->stride, position);
}

static bool has_frame(const struct vnic_inbox *inbox)
{
	uint32_t completion;

	return inbox_completed(slot_at(inbox, inbox->next), inbox->next, &completion) &&
	       !inbox->broken;
}

/* Copies the reference, which ends the frame, and cuts reference and pieces off the frame's length.
 * False: the frame is too short for them. */
static bool read_reference(struct vnic_frame *frame)
{
	struct vnic_reference *reference = &frame->reference;
	uint32_t pieces;

	if (frame->len < sizeof(*reference))
		return false;
	frame->len -= (uint32_t)sizeof(*reference);
	memcpy(reference, frame->data + frame->len, sizeof(*reference));
	if (reference->n_pieces > VNIC_PIECES_MAX)
		return false;
	pieces = reference->n_pieces * (uint32_t)sizeof(struct vnic_reference_piece);
	if (frame->len < pieces)
		return false;
	frame->len -= pieces;
	return true;
}

/* Sets *frame to the frame in a slot. False: the frame is too long, or too short for its reference.
 */
static bool read_frame(const struct vnic_inbox *inbox, struct inbox_slot *slot, uint32_t completion,
		       struct vnic_frame *frame)
{
	*frame = (struct vnic_frame){
		.data = slot->frame, .len = completion & INBOX_LEN, .room = inbox->frame_max};
	if (frame->len > inbox->frame_max)
		return false;
	return !(completion & INBOX_REFERENCE) || read_reference(frame);
}

/* Prefetches the second line of this frame, and the first line of the next slot. After a burst both
 * are in the sender's cache, and together they arrive as fast as one line. */
static void prefetch_slots(const struct vnic_inbox *inbox, const struct inbox_slot *slot,
			   uint32_t len)
{
	if (!inbox_one_line(len))
		__builtin_prefetch(slot->frame + CACHE_LINE);
	__builtin_prefetch(slot_at(inbox, inbox->next + 1));
}

/*
 * Takes the next frame. False: there is none, or the inbox is broken. A frame breaks the inbox if
 * it is longer than a slot, too short for its reference, or in a slot that the receiver holds: only
 * a sender without the lock, or a hostile one, writes it.
 */
static bool take_frame(struct vnic_inbox *inbox, struct vnic_frame *frame)
{
	struct inbox_slot *slot = slot_at(inbox, inbox->next);
	uint32_t completion;

	if (inbox->broken || !inbox_completed(slot, inbox->next, &completion))
		return false;
	if (inbox->taken + inbox->released == VNIC_INBOX_FRAMES ||
	    !read_frame(inbox, slot, completion, frame)) {
		inbox->broken = true;
		vnic_inbox_close(inbox);
		return false;
	}
	inbox->next++;
	inbox->taken++;
	prefetch_slots(inbox, slot, frame->len);
	return true;
}

uint32_t vnic_inbox_rx(struct vnic_inbox *inbox, struct vnic_frame *frames, uint32_t n)
{
	uint32_t count = 0;

	while (count < n && take_frame(inbox, &frames[count]))
		count++;
	inbox->more = count == n;
	return count;
}

static void give_back_slots(struct vnic_inbox *inbox)
{
	if (!inbox->released)
		return;
	inbox->released = 0;
	publish_room(inbox);
}

void vnic_inbox_rx_release(struct vnic_inbox *inbox, uint32_t n)
{
	assert(n <= inbox->taken);
	inbox->taken -= n;
	inbox->released += n;
	if (inbox->more || inbox->released >= BATCH)
		give_back_slots(inbox);
}

int vnic_inbox_irq_fd(const struct vnic_inbox *inbox)
{
	return inbox->fds[VNIC_INBOX_WAKE];
}

static uint32_t mask_word(const struct vnic_inbox *inbox, uint32_t bits)
{
	return inbox->unmaskings << INBOX_UNMASKINGS_AT | bits;
}

void vnic_inbox_irq_mask(struct vnic_inbox *inbox)
{
	vnic_store(&inbox->memory->mask, mask_word(inbox, INBOX_MASKED));
}

bool vnic_inbox_irq_unmask(struct vnic_inbox *inbox)
{
	/* Before the receiver sleeps it gives back every slot that it has read. */
	give_back_slots(inbox);
	inbox->unmaskings++;
	vnic_store(&inbox->memory->mask, mask_word(inbox, 0));
	/*
	 * A sender writes a completion, fences and reads the mask; the receiver writes the mask,
	 * fences and then looks for completions: one of them sees the other's store.
	 */
	vnic_fence();
	return has_frame(inbox);
}

bool vnic_inbox_broken(const struct vnic_inbox *inbox)
{
	return inbox->broken;
}
