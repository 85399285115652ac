/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An inbox with two senders, and a hostile process that writes anything into the shared memory.
 * Before it writes, each frame must arrive once, in order and unchanged. Afterwards frames must
 * still lie in their buffers, and neither side may write outside of the shared memory.
 *
 * The input is a script with three bytes for each step: the step, and two bytes of arguments.
 */
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vnic/inbox.h>
#include <vnic/regs.h>

#include "require.h"
#include "vnic_loop.h"

#define MTU   60
#define LEN   64
#define STEPS 2048
#define BURST 32

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum step { SEND, RECEIVE, RELEASE, SCRIBBLE, INTERRUPT, DEATH, SEND_IN_PLACE, STEP_KINDS };

struct crowd {
	struct vnic_inbox *inbox;
	struct vnic_inbox_broker *broker;
	struct vnic_outbox *senders[2];
	uint8_t *memory;
	uint64_t size;
	uint32_t taken; /* received frames that are not released yet */
	uint8_t sent, received;
	bool hostile;
};

static void dup_fds(const struct vnic_inbox *inbox, int fds[VNIC_INBOX_FDS])
{
	vnic_inbox_fds(inbox, fds);
	for (int i = 0; i < VNIC_INBOX_FDS; i++)
		fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
}

static void gather(struct crowd *c)
{
	int fds[VNIC_INBOX_FDS];
	struct stat st;

	require(!vnic_inbox_create(MTU, &c->inbox));
	for (uint32_t i = 0; i < 2; i++) {
		dup_fds(c->inbox, fds);
		require(!vnic_outbox_open(fds, MTU, i + 1, &c->senders[i]));
	}
	dup_fds(c->inbox, fds);
	require(!vnic_inbox_broker_open(fds, MTU, &c->broker));
	vnic_inbox_fds(c->inbox, fds);
	require(!fstat(fds[VNIC_INBOX_MEMORY], &st));
	c->size = (uint64_t)st.st_size;
	c->memory =
		mmap(NULL, c->size, PROT_READ | PROT_WRITE, MAP_SHARED, fds[VNIC_INBOX_MEMORY], 0);
	require(c->memory != MAP_FAILED);
}

static void part(struct crowd *c)
{
	munmap(c->memory, c->size);
	vnic_outbox_close(c->senders[0]);
	vnic_outbox_close(c->senders[1]);
	vnic_inbox_broker_close(c->broker);
	vnic_inbox_destroy(c->inbox);
}

/* Every third frame with enough room has a payload reference, and every other one of these a piece.
 */
static struct vnic_reference reference_of(uint8_t number)
{
	const uint32_t left = LEN - 1u - number % LEN;

	if (number % 3 || left < sizeof(struct vnic_reference))
		return (struct vnic_reference){0};
	return (struct vnic_reference){
		.address = number * UINT64_C(0x0101010101010101),
		.length = ~number,
		.packets = number,
		.generation = number,
		.qpn = number,
		.n_pieces = number % 2 && left >= sizeof(struct vnic_reference) +
							  sizeof(struct vnic_reference_piece),
	};
}

/* Each byte of a frame is the frame's number, which also gives the length. */
static void send_burst(struct crowd *c, uint32_t sender, uint32_t n)
{
	static uint8_t data[BURST][LEN];
	struct vnic_frame frames[BURST];
	enum vnic_outbox_status status;
	uint32_t sent;

	for (uint32_t i = 0; i < n; i++) {
		uint8_t number = (uint8_t)(c->sent + i);

		memset(data[i], number, LEN);
		frames[i] = (struct vnic_frame){.data = data[i],
						.len = 1 + number % LEN,
						.reference = reference_of(number)};
	}
	sent = vnic_outbox_send(c->senders[sender], frames, n, &status);
	require(sent <= n && (status == VNIC_OUTBOX_OK) == (sent == n));
	require(c->hostile || sent == n || status == VNIC_OUTBOX_FULL);
	c->sent = (uint8_t)(c->sent + sent);
}

/* Writes a burst in place, and does not send the last reserved frame. */
static void send_in_place(struct crowd *c, uint32_t sender, uint32_t n)
{
	struct vnic_frame frames[BURST];
	uint32_t room = vnic_outbox_reserve(c->senders[sender], frames, n);

	require(room <= n);
	if (!room)
		return;
	for (uint32_t i = 0; i < room; i++, c->sent++) {
		require(frames[i].room == VNIC_FRAME_MAX(MTU));
		memset(frames[i].data, c->sent, LEN);
		frames[i].len = 1 + c->sent % LEN;
		frames[i].reference = reference_of(c->sent);
	}
	c->sent--;
	vnic_outbox_commit(c->senders[sender], frames, room - 1);
}

static void receive_burst(struct crowd *c, uint32_t n)
{
	struct vnic_frame frames[BURST];

	n = vnic_inbox_rx(c->inbox, frames, n);
	c->taken += n;
	require(c->taken <= VNIC_INBOX_FRAMES);
	for (uint32_t i = 0; i < n; i++) {
		struct vnic_reference reference = reference_of(c->received);
		uint8_t sum = 0;

		require(vnic_frame_bytes(&frames[i]) <= frames[i].room &&
			frames[i].room == VNIC_FRAME_MAX(MTU));
		for (uint32_t j = 0; j < vnic_frame_bytes(&frames[i]); j++)
			sum |= frames[i].data[j] ^ c->received;
		require(c->hostile ||
			(!sum && frames[i].len == 1u + c->received % LEN &&
			 !memcmp(&frames[i].reference, &reference, sizeof(reference))));
		c->received++;
	}
	require(c->hostile || !vnic_inbox_broken(c->inbox));
}

static void release(struct crowd *c, uint32_t n)
{
	n = n < c->taken ? n : c->taken;
	vnic_inbox_rx_release(c->inbox, n);
	c->taken -= n;
}

/* Changes mostly the lock, position and mask words, sometimes the rings and buffers. */
static void scribble(struct crowd *c, const uint8_t *how)
{
	static const uint32_t values[] = {0, 1, 2, 255, 0x7fffffff, 0x80000000, 0xffffffff, 0xc000};
	uint64_t words = c->size / 4;
	uint64_t word = how[0] & 0x80 ? (how[0] & 31) : (how[0] << 8 | how[1]) * words / 32768;

	c->hostile = true;
	memcpy(c->memory + word % words * 4, &values[how[1] & 7], 4);
}

static void step(struct crowd *c, const uint8_t *how)
{
	switch (how[0] % STEP_KINDS) {
	case SEND: send_burst(c, how[1] & 1, 1 + how[2] % BURST); break;
	case RECEIVE: receive_burst(c, 1 + how[2] % BURST); break;
	case RELEASE: release(c, how[2]); break;
	case SCRIBBLE: scribble(c, how + 1); break;
	case INTERRUPT:
		if (how[1] & 1)
			vnic_inbox_irq_mask(c->inbox);
		else
			(void)vnic_inbox_irq_unmask(c->inbox);
		break;
	case SEND_IN_PLACE: send_in_place(c, how[1] & 1, 1 + how[2] % BURST); break;
	case DEATH: vnic_inbox_broker_unlock(c->broker, how[1] & 3); break;
	default: abort();
	}
	require(c->hostile || !vnic_inbox_broker_holder(c->broker));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct crowd crowd = {0};

	gather(&crowd);
	for (size_t i = 0; i < STEPS && size >= 3; i++, data += 3, size -= 3)
		step(&crowd, data);
	part(&crowd);
	return 0;
}
