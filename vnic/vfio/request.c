/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The commands of a client: checks their sizes and descriptors, executes them and replies. */
#include <errno.h>
#include <linux/vfio.h>
#include <string.h>

#include "version.h"
#include "vfio_server_private.h"

/* A command: its body, which lies in the connection's buffer, and where its reply's body goes. */
struct request {
	const uint8_t *body;
	uint32_t size;
	int *fds;
	uint32_t n_fds;
	uint8_t *reply;
	uint32_t room;
};

/* Each handler returns the length of the reply's body, or a negative errno value. */

static int handle_version(struct vnic_vfio_server *server, const struct request *r)
{
	int n;

	if (server->version_known)
		return -EINVAL;
	n = version_answer(r->body, r->size, r->reply, r->room);
	server->version_known = n >= 0;
	return n;
}

static int handle_dma_map(struct vnic_vfio_server *server, const struct request *r)
{
	struct vfio_user_dma_map map;

	memcpy(&map, r->body, sizeof(map));
	return dma_map(server, &map, r->n_fds ? r->fds[0] : -1);
}

static int handle_dma_unmap(struct vnic_vfio_server *server, const struct request *r)
{
	struct vfio_user_dma_unmap unmap;
	int rc;

	memcpy(&unmap, r->body, sizeof(unmap));
	rc = dma_unmap(server, &unmap);
	memcpy(r->reply, &unmap, sizeof(unmap));
	return rc ?: (int)sizeof(unmap);
}

static int handle_device_info(struct vnic_vfio_server *server, const struct request *r)
{
	struct vfio_user_device_info info;

	(void)server;
	memcpy(&info, r->body, sizeof(info));
	if (info.argsz < sizeof(info))
		return -EINVAL;
	info = (struct vfio_user_device_info){
		.argsz = sizeof(info),
		.flags = VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET,
		.regions = VFIO_PCI_NUM_REGIONS,
		.irqs = VFIO_PCI_NUM_IRQS,
	};
	memcpy(r->reply, &info, sizeof(info));
	return (int)sizeof(info);
}

static int handle_region_info(struct vnic_vfio_server *server, const struct request *r)
{
	const struct vnic_vfio_function *function = &server->attr.function;
	struct vfio_user_region_info info;

	memcpy(&info, r->body, sizeof(info));
	if (info.argsz < sizeof(info) || info.index >= VFIO_PCI_NUM_REGIONS)
		return -EINVAL;
	info = (struct vfio_user_region_info){
		.argsz = sizeof(info),
		.index = info.index,
		.size = region_size(server, info.index),
	};
	if (info.size)
		info.flags = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE;
	if (info.index && info.index == function->mapped_bar) {
		info.flags |= VFIO_REGION_INFO_FLAG_MMAP;
		server->connection.out_fd = function->mapped_fd;
	}
	memcpy(r->reply, &info, sizeof(info));
	return (int)sizeof(info);
}

/* Answers that no register can be accessed by an eventfd instead of a message. */
static int handle_region_io_fds(struct vnic_vfio_server *server, const struct request *r)
{
	(void)server, (void)r;
	return -ENOTSUP;
}

static int handle_irq_info(struct vnic_vfio_server *server, const struct request *r)
{
	struct vfio_user_irq_info info;

	memcpy(&info, r->body, sizeof(info));
	if (info.argsz < sizeof(info) || info.index >= VFIO_PCI_NUM_IRQS)
		return -EINVAL;
	info = (struct vfio_user_irq_info){
		.argsz = sizeof(info),
		.index = info.index,
		.count = irq_count(&server->irq, info.index),
	};
	if (info.count)
		info.flags = VFIO_IRQ_INFO_EVENTFD;
	memcpy(r->reply, &info, sizeof(info));
	return (int)sizeof(info);
}

static int handle_set_irqs(struct vnic_vfio_server *server, const struct request *r)
{
	struct vfio_user_irq_set set;
	const uint32_t data = r->size - (uint32_t)sizeof(set);

	memcpy(&set, r->body, sizeof(set));
	if (set.argsz < sizeof(set) || set.argsz - sizeof(set) < data)
		return -EINVAL;
	return irq_set(&server->irq, &set, r->body + sizeof(set), data, r->fds, r->n_fds);
}

static int handle_region_read(struct vnic_vfio_server *server, const struct request *r)
{
	struct vfio_user_access access;
	int rc;

	memcpy(&access, r->body, sizeof(access));
	rc = region_read(server, &access, r->reply + sizeof(access));
	memcpy(r->reply, &access, sizeof(access));
	return rc ?: (int)(sizeof(access) + access.count);
}

static int handle_region_write(struct vnic_vfio_server *server, const struct request *r)
{
	struct vfio_user_access access;
	int rc;

	memcpy(&access, r->body, sizeof(access));
	if (r->size - sizeof(access) != access.count)
		return -EINVAL;
	rc = region_write(server, &access, r->body + sizeof(access));
	memcpy(r->reply, &access, sizeof(access));
	return rc ?: (int)sizeof(access);
}

/* Executes several small writes; stops at the first that is not valid. */
static int handle_write_multi(struct vnic_vfio_server *server, const struct request *r)
{
	struct vfio_user_small_write write;
	uint64_t count;
	int rc = 0;

	memcpy(&count, r->body, sizeof(count));
	if (!count || count > VFIO_USER_SMALL_WRITES ||
	    r->size - sizeof(count) != count * sizeof(write))
		return -EINVAL;
	for (uint64_t i = 0; i < count && !rc; i++) {
		memcpy(&write, r->body + sizeof(count) + i * sizeof(write), sizeof(write));
		rc = write.access.count <= sizeof(write.data)
			     ? region_write(server, &write.access, write.data)
			     : -EINVAL;
	}
	memcpy(r->reply, &count, sizeof(count));
	return rc ?: (int)sizeof(count);
}

static int handle_reset(struct vnic_vfio_server *server, const struct request *r)
{
	(void)r;
	server->attr.ops.reset(server->attr.ctx);
	config_space_reset(&server->config, &server->attr.function);
	server_apply_master(server);
	server->irq.pending = 0;
	migration_reset(server);
	return 0;
}

static int handle_feature(struct vnic_vfio_server *server, const struct request *r)
{
	return migration_feature(server, r->body, r->size, r->reply, r->room);
}

static int handle_migration_read(struct vnic_vfio_server *server, const struct request *r)
{
	return migration_read(server, r->body, r->size, r->reply, r->room);
}

static int handle_migration_write(struct vnic_vfio_server *server, const struct request *r)
{
	return migration_write(server, r->body, r->size);
}

static const struct command {
	int (*handle)(struct vnic_vfio_server *server, const struct request *r);
	uint32_t least, most; /* bytes of the body */
	uint32_t fds;         /* descriptors at most */
} commands[VFIO_USER_COMMANDS] = {
	[VFIO_USER_VERSION] = {handle_version, sizeof(struct vfio_user_version),
			       VFIO_USER_MESSAGE_MAX},
	[VFIO_USER_DMA_MAP] = {handle_dma_map, sizeof(struct vfio_user_dma_map),
			       sizeof(struct vfio_user_dma_map), 1},
	[VFIO_USER_DMA_UNMAP] = {handle_dma_unmap, sizeof(struct vfio_user_dma_unmap),
				 sizeof(struct vfio_user_dma_unmap)},
	[VFIO_USER_DEVICE_GET_INFO] = {handle_device_info, sizeof(struct vfio_user_device_info),
				       sizeof(struct vfio_user_device_info)},
	[VFIO_USER_DEVICE_GET_REGION_INFO] = {handle_region_info,
					      sizeof(struct vfio_user_region_info),
					      sizeof(struct vfio_user_region_info)},
	[VFIO_USER_DEVICE_GET_REGION_IO_FDS] = {handle_region_io_fds, 0, VFIO_USER_MESSAGE_MAX},
	[VFIO_USER_DEVICE_GET_IRQ_INFO] = {handle_irq_info, sizeof(struct vfio_user_irq_info),
					   sizeof(struct vfio_user_irq_info)},
	[VFIO_USER_DEVICE_SET_IRQS] = {handle_set_irqs, sizeof(struct vfio_user_irq_set),
				       sizeof(struct vfio_user_irq_set) + VNIC_VFIO_VECTORS,
				       VFIO_USER_FDS},
	[VFIO_USER_REGION_READ] = {handle_region_read, sizeof(struct vfio_user_access),
				   sizeof(struct vfio_user_access)},
	[VFIO_USER_REGION_WRITE] = {handle_region_write, sizeof(struct vfio_user_access),
				    VFIO_USER_MESSAGE_MAX},
	[VFIO_USER_DEVICE_RESET] = {handle_reset, 0, 0},
	[VFIO_USER_REGION_WRITE_MULTI] = {handle_write_multi, sizeof(uint64_t),
					  VFIO_USER_MESSAGE_MAX},
	[VFIO_USER_DEVICE_FEATURE] = {handle_feature, sizeof(struct vfio_user_feature),
				      VFIO_USER_MESSAGE_MAX},
	[VFIO_USER_MIG_DATA_READ] = {handle_migration_read, sizeof(struct vfio_user_migration_data),
				     VFIO_USER_MESSAGE_MAX},
	[VFIO_USER_MIG_DATA_WRITE] = {handle_migration_write,
				      sizeof(struct vfio_user_migration_data),
				      VFIO_USER_MESSAGE_MAX},
};

static int execute(struct vnic_vfio_server *server, uint16_t number, const struct request *r)
{
	const struct command *command = number < VFIO_USER_COMMANDS ? &commands[number] : NULL;

	if (!command || !command->handle)
		return -ENOTSUP;
	if (r->size < command->least || r->size > command->most || r->n_fds > command->fds)
		return -EINVAL;
	if (!server->version_known && number != VFIO_USER_VERSION)
		return -EINVAL;
	return command->handle(server, r);
}

int request_handle(struct vnic_vfio_server *server)
{
	struct connection *c = &server->connection;
	const uint32_t header = (uint32_t)sizeof(c->in.header);
	const struct request request = {
		.body = c->in.bytes + header,
		.size = c->in.header.size - header,
		.fds = c->fds,
		.n_fds = c->n_fds,
		.reply = c->out.bytes + header,
		.room = VFIO_USER_MESSAGE_MAX - header,
	};

	server->outcome = execute(server, c->in.header.command, &request);
	server->reply_held = true;
	return request_finish(server);
}

int request_finish(struct vnic_vfio_server *server)
{
	struct connection *c = &server->connection;
	int n = server->outcome, rc;

	if (!server_settle(server))
		return 0;
	server->reply_held = false;
	rc = dma_finish_unmap(server) ?: migration_save(server);
	if (rc)
		n = rc;
	rc = connection_reply(c, n > 0 ? (uint32_t)n : 0, n < 0 ? (uint32_t)-n : 0);
	connection_next(c);
	return rc;
}
