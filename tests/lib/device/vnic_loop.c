/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vnic_loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <vnic/regs.h>

#include "create.h"
#include "shared.h"
#include "transport.h"

struct loop {
	struct vnic_transport transport;
	struct vnic_loop public;
	uint16_t mtu;
};

static struct loop *to_loop(struct vnic_transport *transport)
{
	return (struct loop *)transport;
}

static void loop_interrupt(void *ctx, uint32_t vector)
{
	struct loop *loop = ctx;

	(void)vector;
	loop->public.interrupts++;
}

static int loop_memory(struct vnic_transport *transport, uint64_t size, void **memory)
{
	struct loop *loop = to_loop(transport);
	struct vnic_region region = {.size = size};
	struct vnic_device_attr attr = {
		.regions = &region,
		.region_count = 1,
		.shared_mac = true,
		.bars = loop->public.bars,
		.mac = {0x02, 0, 0, 0, 0, 1},
		.mtu = loop->mtu,
		.interrupt = loop_interrupt,
		.ctx = loop,
	};

	*memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (*memory == MAP_FAILED)
		return -errno;
	loop->public.memory_size = size;
	loop->public.memory = region.memory = *memory;
	return vnic_device_create(&attr, &loop->public.device);
}

static void loop_kick(struct vnic_transport *transport)
{
	vnic_fence();
	if (vnic_exchange(vnic_reg(transport->bar0, VNIC_REG_ASLEEP), 0))
		to_loop(transport)->public.kicks++;
}

/* The status of a request: in one process there is no daemon. */
static int32_t refuse_request(uint32_t type)
{
	switch (type) {
	case VNIC_ATTACH_REGISTER:
	case VNIC_ATTACH_UNREGISTER: return 0; /* no daemon limits who sends to a queue pair */
	case VNIC_ATTACH_RESOLVE: return -ENETUNREACH;
	case VNIC_ATTACH_LEASE: return -ENOSPC;
	case VNIC_ATTACH_INTRODUCE: return -ENOENT;
	case VNIC_ATTACH_UPLINK: return -ENODEV;
	default: return -EOPNOTSUPP;
	}
}

static int loop_request(struct vnic_transport *transport, union vnic_message *message, uint32_t len,
			struct vnic_passed *passed)
{
	struct vnic_device *device = to_loop(transport)->public.device;
	struct vnic_attach_reg *reg = &message->reg;

	(void)len;
	passed->wanted = 0;
	if (message->type != VNIC_ATTACH_REG)
		message->answer.status = refuse_request(message->type);
	else if (reg->write)
		reg->status = vnic_device_reg_write(device, reg->bar, reg->offset, reg->value);
	else
		reg->status = vnic_device_reg_read(device, reg->bar, reg->offset, &reg->value);
	return 0;
}

static int loop_post(struct vnic_transport *transport, const void *message, uint32_t len)
{
	(void)transport;
	(void)message;
	(void)len;
	return -EOPNOTSUPP;
}

/* The loop transport has no process to isolate from. */
static void loop_isolate(struct vnic_transport *transport)
{
	(void)transport;
}

/* The memory stays for the device until vnic_loop_close. */
static bool loop_close(struct vnic_transport *transport)
{
	to_loop(transport)->public.driver = NULL;
	return true;
}

static const struct vnic_transport_ops loop_ops = {
	.memory = loop_memory,
	.request = loop_request,
	.post = loop_post,
	.kick = loop_kick,
	.isolate = loop_isolate,
	.close = loop_close,
};

int vnic_loop_open(uint16_t mtu, struct vnic_loop **loop)
{
	struct loop *l = calloc(1, sizeof(*l));
	int ret = -ENOMEM;

	if (!l)
		return ret;
	l->mtu = mtu;
	l->public.bars = aligned_alloc(VNIC_BAR0_SIZE, VNIC_BAR_SIZE);
	if (l->public.bars) {
		memset(l->public.bars, 0, VNIC_BAR_SIZE);
		l->transport = (struct vnic_transport){.ops = &loop_ops,
						       .bar0 = l->public.bars,
						       .irq_fd = -1,
						       .ctl_fd = -1,
						       .notice_fd = -1,
						       .doorbell = -1,
						       .spare = -1};
		ret = vnic_driver_open(&l->transport, mtu, &l->public.driver);
	}
	if (ret) {
		vnic_loop_close(&l->public);
		return ret;
	}
	*loop = &l->public;
	return 0;
}

void vnic_loop_close(struct vnic_loop *loop)
{
	struct loop *l = (struct loop *)((uint8_t *)loop - offsetof(struct loop, public));

	vnic_driver_detach(loop->driver);
	vnic_device_destroy(loop->device);
	if (loop->memory)
		munmap(loop->memory, loop->memory_size);
	free(loop->bars);
	free(l);
}

int vnic_inbox_create(uint16_t mtu, struct vnic_inbox **inbox)
{
	int fds[VNIC_INBOX_FDS];
	int ret = inbox_create_fds(mtu, fds);

	if (ret) {
		vnic_close_fds(fds, VNIC_INBOX_FDS);
		return ret;
	}
	ret = vnic_inbox_open(fds, mtu, inbox);
	if (ret)
		return ret;
	ret = vnic_inbox_publish(*inbox);
	if (ret)
		vnic_inbox_abandon(*inbox);
	return ret;
}
