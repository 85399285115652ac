/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* An inbox with two senders, and frames that carry consecutive numbers. */
#ifndef URXE_TEST_INBOX_H
#define URXE_TEST_INBOX_H

#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <vnic/inbox.h>

#include "vnic_loop.h"

#define MTU       100
#define LEN       60
#define BURST     32
#define KEPT_BACK 15 /* buffers that the receiver may hold back before it posts them again */

#define FIRST  1 /* the senders' numbers */
#define SECOND 2

struct fixture {
	struct vnic_inbox *inbox;
	struct vnic_inbox_broker *broker;
	struct vnic_outbox *first, *second;
	uint8_t *memory; /* the whole memory, which a hostile sender can write */
	uint64_t size;
	uint8_t next;  /* number in the next frame sent */
	uint8_t due;   /* number expected in the next frame received */
	bool in_place; /* the first sender writes its frames straight into the receiver's buffers */
};

static inline void dup_fds(const struct vnic_inbox *inbox, int fds[VNIC_INBOX_FDS])
{
	vnic_inbox_fds(inbox, fds);
	for (int i = 0; i < VNIC_INBOX_FDS; i++) {
		fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
		assert_true(fds[i] >= 0);
	}
}

static inline struct vnic_outbox *open_outbox(const struct vnic_inbox *inbox, uint32_t self)
{
	struct vnic_outbox *outbox;
	int fds[VNIC_INBOX_FDS];

	dup_fds(inbox, fds);
	assert_int_equal(vnic_outbox_open(fds, MTU, self, &outbox), 0);
	return outbox;
}

static inline int open_inbox(void **state)
{
	static struct fixture f;
	int fds[VNIC_INBOX_FDS];
	struct stat st;

	f = (struct fixture){0};
	assert_int_equal(vnic_inbox_create(MTU, &f.inbox), 0);
	f.first = open_outbox(f.inbox, FIRST);
	f.second = open_outbox(f.inbox, SECOND);
	dup_fds(f.inbox, fds);
	assert_int_equal(vnic_inbox_broker_open(fds, MTU, &f.broker), 0);
	vnic_inbox_fds(f.inbox, fds);
	assert_int_equal(fstat(fds[VNIC_INBOX_MEMORY], &st), 0);
	f.size = (uint64_t)st.st_size;
	f.memory =
		mmap(NULL, f.size, PROT_READ | PROT_WRITE, MAP_SHARED, fds[VNIC_INBOX_MEMORY], 0);
	assert_ptr_not_equal(f.memory, MAP_FAILED);
	*state = &f;
	return 0;
}

static inline int open_in_place(void **state)
{
	int rc = open_inbox(state);

	((struct fixture *)*state)->in_place = true;
	return rc;
}

static inline int close_inbox(void **state)
{
	struct fixture *f = *state;

	munmap(f->memory, f->size);
	vnic_inbox_destroy(f->inbox);
	vnic_inbox_broker_close(f->broker);
	vnic_outbox_close(f->first);
	vnic_outbox_close(f->second);
	return 0;
}

static inline void renew(void **state)
{
	bool in_place = ((struct fixture *)*state)->in_place;

	close_inbox(state);
	open_inbox(state);
	((struct fixture *)*state)->in_place = in_place;
}

/* As vnic_outbox_send for n frames of LEN bytes; returns 0 if the lock is held by another. */
static inline uint32_t send_in_place(struct vnic_outbox *outbox, const struct vnic_frame *from,
				     uint32_t n, enum vnic_outbox_status *status)
{
	struct vnic_frame frames[2 * VNIC_INBOX_FRAMES];
	uint32_t room = vnic_outbox_reserve(outbox, frames, n);

	for (uint32_t i = 0; i < room; i++) {
		memcpy(frames[i].data, from[i].data, LEN);
		frames[i].len = LEN;
	}
	if (room)
		vnic_outbox_commit(outbox, frames, room);
	*status = room == n ? VNIC_OUTBOX_OK : VNIC_OUTBOX_FULL;
	return room;
}

static inline uint32_t send_frames(const struct fixture *f, struct vnic_outbox *outbox,
				   const struct vnic_frame *frames, uint32_t n,
				   enum vnic_outbox_status *status)
{
	if (f->in_place && outbox == f->first)
		return send_in_place(outbox, frames, n, status);
	return vnic_outbox_send(outbox, frames, n, status);
}

/* Sends numbered frames; returns how many the inbox took. */
static inline uint32_t send_from(struct fixture *f, struct vnic_outbox *outbox, uint32_t n,
				 enum vnic_outbox_status *status)
{
	static uint8_t data[2 * VNIC_INBOX_FRAMES][LEN];
	struct vnic_frame frames[2 * VNIC_INBOX_FRAMES];
	uint32_t sent;

	for (uint32_t i = 0; i < n; i++) {
		memset(data[i], (uint8_t)(f->next + i), LEN);
		frames[i] = (struct vnic_frame){.data = data[i], .len = LEN};
	}
	sent = send_frames(f, outbox, frames, n, status);
	f->next = (uint8_t)(f->next + sent);
	return sent;
}

static inline void send_all(struct fixture *f, struct vnic_outbox *outbox, uint32_t n)
{
	enum vnic_outbox_status status;

	assert_int_equal(send_from(f, outbox, n, &status), n);
	assert_int_equal(status, VNIC_OUTBOX_OK);
}

static inline void check_frame(const struct vnic_frame *frame, uint8_t number)
{
	assert_int_equal(frame->len, LEN);
	for (uint32_t i = 0; i < LEN; i++)
		assert_int_equal(frame->data[i], number);
}

/* Receives all frames and checks that they are the sent ones, in order. */
static inline uint32_t receive(struct fixture *f)
{
	struct vnic_frame frames[BURST];
	uint32_t n, count = 0;

	while ((n = vnic_inbox_rx(f->inbox, frames, BURST))) {
		for (uint32_t i = 0; i < n; i++)
			check_frame(&frames[i], f->due++);
		vnic_inbox_rx_release(f->inbox, n);
		count += n;
	}
	assert_false(vnic_inbox_broken(f->inbox));
	return count;
}

/* Whether an interrupt came since the last call. */
static inline bool interrupted(const struct fixture *f)
{
	eventfd_t count;

	return eventfd_read(vnic_inbox_irq_fd(f->inbox), &count) == 0;
}

#endif
