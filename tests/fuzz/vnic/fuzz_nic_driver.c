/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A hostile device against the driver side of the NIC. The input is the actions of both: the
 * program calls the driver correctly, and the device writes completions and any bytes into the
 * driver's memory, beside frames of an honest device.
 *
 * Each frame that the driver returns must lie in its memory, have a valid length, and share no byte
 * with another frame in use. A driver that detects an error must report it for good and return no
 * more frames.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <vnic/regs.h>

#include "require.h"
#include "script.h"
#include "vnic_loop.h"

#define MTU      600
#define BURST    32
#define HELD     1024
#define MAX_STEP 600

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct play {
	struct script in;
	struct vnic_loop *loop;
	const struct vmxnet3_queue_pair *queues;
	struct vnic_frame held[HELD]; /* received and not released, oldest first */
	uint32_t held_count;
	uint32_t tx_next, rx_next; /* next completions, with their generation */
	bool tx_gen, rx_gen;
};

static void *at(const struct play *p, uint64_t addr)
{
	require(addr && addr < p->loop->memory_size);
	return (uint8_t *)p->loop->memory + addr;
}

/* --- The program */

static bool overlap(const struct vnic_frame *a, const struct vnic_frame *b)
{
	return a->data < b->data + b->room && b->data < a->data + a->room;
}

static void check_frame(const struct play *p, const struct vnic_frame *frame)
{
	const uint8_t *start = p->loop->memory;

	require(frame->room == VNIC_FRAME_MAX(MTU) && frame->len <= frame->room);
	require(frame->data >= start && frame->data + frame->room <= start + p->loop->memory_size);
	for (uint32_t i = 0; i < p->held_count; i++)
		require(!overlap(frame, &p->held[i]));
}

static void do_receive(struct play *p)
{
	struct vnic_frame frames[BURST];
	bool broken = vnic_driver_broken(p->loop->driver);
	uint32_t n = vnic_driver_rx(p->loop->driver, frames, script_get8(&p->in) % BURST + 1);

	require(!broken || n == 0);
	for (uint32_t i = 0; i < n; i++) {
		check_frame(p, &frames[i]);
		require(p->held_count < HELD);
		p->held[p->held_count++] = frames[i];
	}
}

static void do_release(struct play *p)
{
	uint32_t n = script_get8(&p->in) * 4u;

	if (n > p->held_count)
		n = p->held_count;
	vnic_driver_rx_release(p->loop->driver, n);
	p->held_count -= n;
	memmove(p->held, p->held + n, p->held_count * sizeof(p->held[0]));
}

static void do_transmit(struct play *p)
{
	struct vnic_frame frames[BURST];
	uint32_t n =
		vnic_driver_tx_reserve(p->loop->driver, frames, script_get8(&p->in) % BURST + 1);

	for (uint32_t i = 0; i < n; i++) {
		check_frame(p, &frames[i]);
		for (uint32_t j = 0; j < i; j++)
			require(!overlap(&frames[i], &frames[j]));
		frames[i].len = VNIC_ETH_HEADER + script_get8(&p->in);
		memset(frames[i].data, (int)i, frames[i].len);
	}
	vnic_driver_tx_commit(p->loop->driver, frames, n);
}

static void do_interrupts(struct play *p)
{
	uint8_t choice = script_get8(&p->in);

	if (choice & 1)
		vnic_driver_irq_mask(p->loop->driver);
	else
		vnic_driver_irq_unmask(p->loop->driver);
	vnic_driver_set_multicast(p->loop->driver, choice & 2);
}

/* --- The device */

static void do_complete_tx(struct play *p)
{
	struct vmxnet3_tx_comp *comp = at(p, p->queues->tx.comp_ring_addr);
	uint32_t size = p->queues->tx.comp_ring_size;

	comp[p->tx_next].index = script_get16(&p->in) & 0x1fff;
	comp[p->tx_next].gen = p->tx_gen ? VMXNET3_CD_GEN : 0;
	if (++p->tx_next == size) {
		p->tx_next = 0;
		p->tx_gen = !p->tx_gen;
	}
}

static void do_complete_rx(struct play *p)
{
	struct vmxnet3_rx_comp *comp = at(p, p->queues->rx.comp_ring_addr);
	uint32_t size = p->queues->rx.comp_ring_size;
	uint8_t choice = script_get8(&p->in);

	comp[p->rx_next].index = choice & 1
					 ? script_get32(&p->in)
					 : script_get8(&p->in) | VMXNET3_RCD_SOP | VMXNET3_RCD_EOP;
	comp[p->rx_next].len = choice & 2 ? script_get32(&p->in) : script_get8(&p->in);
	comp[p->rx_next].gen = (p->rx_gen ? VMXNET3_CD_GEN : 0) | (choice & 4 ? 0x3fffffff : 0);
	if (++p->rx_next == size) {
		p->rx_next = 0;
		p->rx_gen = !p->rx_gen;
	}
}

/* Writes to the rings and the shared area. */
static void do_write(struct play *p)
{
	const uint64_t places[] = {
		p->queues->tx.ring_addr,      p->queues->tx.comp_ring_addr,
		p->queues->rx.ring_addr[0],   p->queues->rx.ring_addr[1],
		p->queues->rx.comp_ring_addr, 4096,
	};
	uint8_t choice = script_get8(&p->in);
	uint8_t *to = at(p, places[choice % 6] % (p->loop->memory_size - 65536));
	uint32_t value = script_get32(&p->in);

	memcpy(to + script_get16(&p->in) % 16384, &value, choice / 6 % 4 + 1);
}

/* Runs the honest device of vnic_loop, which also reads the changed rings. */
static void do_honest(struct play *p)
{
	struct vnic_tx_frame sent[BURST];
	uint8_t frame[VNIC_FRAME_MAX(MTU)], choice = script_get8(&p->in);
	uint32_t n;

	memset(frame, choice & ~1, sizeof(frame));
	vnic_device_rx(p->loop->device, 0, frame, VNIC_ETH_HEADER + choice * 2u);
	n = vnic_device_tx(p->loop->device, 0, sent, BURST);
	vnic_device_tx_done(p->loop->device, 0, choice & 1 ? n : n / 2);
	vnic_device_flush(p->loop->device);
}

static void step(struct play *p)
{
	switch (script_get8(&p->in) % 10) {
	case 0:
	case 1: do_receive(p); break;
	case 2: do_release(p); break;
	case 3: do_transmit(p); break;
	case 4: do_interrupts(p); break;
	case 5: do_complete_tx(p); break;
	case 6: do_complete_rx(p); break;
	case 7: do_write(p); break;
	default: do_honest(p);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct play *p = calloc(1, sizeof(*p));
	const struct vmxnet3_driver_shared *shared;
	struct vmxnet3_queue_pair queues;
	uint32_t low = 0;

	require(p && vnic_loop_open(MTU, &p->loop) == 0);
	p->in = (struct script){data, size};
	require(vnic_device_reg_read(p->loop->device, 1, VMXNET3_REG_DSAL, &low) == 0);
	shared = at(p, low);
	/* A copy, so that later writes do not move the rings. */
	memcpy(&queues, at(p, shared->misc.queue_desc_addr), sizeof(queues));
	p->queues = &queues;
	p->tx_gen = p->rx_gen = true;
	for (uint32_t i = 0; i < MAX_STEP && p->in.left; i++)
		step(p);
	vnic_loop_close(p->loop);
	free(p);
	return 0;
}
