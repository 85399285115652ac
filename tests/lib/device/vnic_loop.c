/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vnic_loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <vnic/regs.h>

#include "create.h"
#include "message.h"
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

static int loop_reg_write(struct vnic_transport *transport, uint32_t offset, uint32_t value)
{
	return vnic_device_reg_write(to_loop(transport)->public.device, 1, offset, value);
}

static int loop_reg_read(struct vnic_transport *transport, uint32_t offset, uint32_t *value)
{
	return vnic_device_reg_read(to_loop(transport)->public.device, 1, offset, value);
}

static void loop_kick(struct vnic_transport *transport)
{
	vnic_fence();
	if (vnic_exchange(vnic_reg(transport->bar0, VNIC_REG_ASLEEP), 0))
		to_loop(transport)->public.kicks++;
}

/* In one process there is no daemon that could resolve addresses. */
static int loop_resolve(struct vnic_transport *transport, uint8_t sgid_index,
			const uint8_t dgid[16], struct vnic_next_hop *hop)
{
	(void)transport;
	(void)sgid_index;
	(void)dgid;
	(void)hop;
	return -ENETUNREACH;
}

/* No daemon limits who sends to a remote queue pair. */
static int loop_remote(struct vnic_transport *transport, bool connected, uint32_t local_qpn,
		       const uint8_t dgid[16], uint32_t qpn)
{
	(void)transport;
	(void)connected;
	(void)local_qpn;
	(void)dgid;
	(void)qpn;
	return 0;
}

static int loop_lease(struct vnic_transport *transport, uint32_t *qpn_first)
{
	(void)transport;
	(void)qpn_first;
	return -ENOSPC;
}

static int loop_make_inbox(struct vnic_transport *transport, int fds[VNIC_INBOX_FDS])
{
	(void)transport;
	(void)fds;
	return -EOPNOTSUPP;
}

static int loop_inbox(struct vnic_transport *transport, const int fds[VNIC_INBOX_FDS])
{
	(void)transport;
	(void)fds;
	return -EOPNOTSUPP;
}

static int loop_introduce(struct vnic_transport *transport, const uint8_t mac[6], uint32_t qpn,
			  int fds[VNIC_INBOX_FDS])
{
	(void)transport;
	(void)mac;
	(void)qpn;
	(void)fds;
	return -ENOENT;
}

static bool loop_notice(struct vnic_transport *transport, struct vnic_attach_port *port,
			int *question)
{
	(void)transport;
	(void)port;
	*question = -1;
	return false;
}

static bool loop_introduction(struct vnic_transport *transport, uint32_t *qpn,
			      int fds[VNIC_INBOX_FDS])
{
	(void)transport;
	(void)qpn;
	(void)fds;
	return false;
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
	.reg_write = loop_reg_write,
	.reg_read = loop_reg_read,
	.kick = loop_kick,
	.resolve = loop_resolve,
	.make_inbox = loop_make_inbox,
	.inbox = loop_inbox,
	.introduce = loop_introduce,
	.remote = loop_remote,
	.lease = loop_lease,
	.notice = loop_notice,
	.introduction = loop_introduction,
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
						       .notice_fd = -1};
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
