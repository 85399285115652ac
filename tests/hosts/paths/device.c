/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "device.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

static struct ibv_context *open_first(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;

	if (!context)
		errx(1, "cannot open the device");
	ibv_free_device_list(list);
	return context;
}

static void query(struct device *dev)
{
	struct ibv_port_attr port;

	if (ibv_query_gid(dev->context, 1, dev->gid_index, &dev->gid))
		errx(1, "no GID at index %u", dev->gid_index);
	if (ibv_query_port(dev->context, 1, &port))
		errx(1, "ibv_query_port");
	dev->mtu = port.active_mtu;
}

void device_open(struct device *dev, uint8_t gid_index, uint64_t size, int depth)
{
	*dev = (struct device){.context = open_first(), .gid_index = gid_index};
	query(dev);
	dev->pd = ibv_alloc_pd(dev->context);
	if (!dev->pd)
		err(1, "ibv_alloc_pd");
	dev->memory = aligned_alloc(4096, size);
	if (!dev->memory)
		err(1, "memory");
	dev->mr = ibv_reg_mr(dev->pd, dev->memory, size,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	if (!dev->mr)
		err(1, "ibv_reg_mr");
	dev->channel = ibv_create_comp_channel(dev->context);
	if (!dev->channel || fcntl(dev->channel->fd, F_SETFL, O_NONBLOCK))
		err(1, "ibv_create_comp_channel");
	dev->cq = ibv_create_cq(dev->context, depth, NULL, dev->channel, 0);
	if (!dev->cq || ibv_req_notify_cq(dev->cq, 0))
		err(1, "ibv_create_cq");
}

void device_close(struct device *dev)
{
	if (ibv_destroy_cq(dev->cq) || ibv_destroy_comp_channel(dev->channel) ||
	    ibv_dereg_mr(dev->mr) || ibv_dealloc_pd(dev->pd) || ibv_close_device(dev->context))
		errx(1, "cannot destroy an object");
	free(dev->memory);
}

void device_rearm(struct device *dev)
{
	struct ibv_cq *cq;
	void *context;

	if (!ibv_get_cq_event(dev->channel, &cq, &context))
		ibv_ack_cq_events(cq, 1);
	else if (errno != EAGAIN)
		err(1, "ibv_get_cq_event");
	if (ibv_req_notify_cq(dev->cq, 0))
		errx(1, "ibv_req_notify_cq");
}
