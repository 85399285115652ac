/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Creation and end of a server and of its connection, and the reading of messages. */
#include "vfio_server_private.h"

#include <errno.h>
#include <stdlib.h>

/* Messages of one event at most: a client that sends without end must not stop other work. */
#define MESSAGES 64

int vnic_vfio_server_create(const struct vnic_vfio_attr *attr, struct vnic_vfio_server **server)
{
	struct vnic_vfio_server *new;

	if (!config_space_function_valid(&attr->function))
		return -EINVAL;
	new = calloc(1, sizeof(*new));
	if (!new)
		return -ENOMEM;
	new->attr = *attr;
	irq_init(&new->irq, attr->function.vectors);
	connection_init(&new->connection);
	config_space_reset(&new->config, &attr->function);
	new->migration.state = MIGRATION_RUNNING;
	*server = new;
	return 0;
}

/* Closes the connection only, without a reset: another process has taken over the function, its
 * model and its memory. */
static void close_without_reset(struct vnic_vfio_server *server)
{
	connection_close(&server->connection);
	irq_close(&server->irq);
}

void vnic_vfio_server_destroy(struct vnic_vfio_server *server)
{
	if (!server)
		return;
	if (server->handing_over)
		close_without_reset(server);
	else
		vnic_vfio_server_disconnect(server);
	free(server);
}

int vnic_vfio_server_connect(struct vnic_vfio_server *server, int socket)
{
	if (server->connection.socket >= 0)
		return -EBUSY;
	connection_open(&server->connection, socket);
	config_space_reset(&server->config, &server->attr.function);
	server_apply_master(server);
	migration_reset(server);
	server->version_known = false;
	return 0;
}

int vnic_vfio_server_fd(const struct vnic_vfio_server *server)
{
	return server->connection.socket;
}

bool vnic_vfio_server_is_writing(const struct vnic_vfio_server *server)
{
	return connection_is_writing(&server->connection);
}

bool vnic_vfio_server_is_held(const struct vnic_vfio_server *server)
{
	return server->reply_held || server->closing;
}

static bool is_settled(const struct vnic_vfio_server *server)
{
	const struct vnic_vfio_ops *ops = &server->attr.ops;

	return !ops->settled || ops->settled(server->attr.ctx);
}

void server_apply_master(const struct vnic_vfio_server *server)
{
	const struct vnic_vfio_attr *attr = &server->attr;

	if (attr->ops.bus_master)
		attr->ops.bus_master(attr->ctx, config_space_is_master(&server->config));
}

bool server_settle(struct vnic_vfio_server *server)
{
	struct dma_removal *removal = &server->removal;

	if (removal->pending && removal->waited && is_settled(server)) {
		removal->waited = false;
		dma_remove_again(server);
	}
	if (is_settled(server))
		return true;
	removal->waited = true;
	return false;
}

/* Unmaps the memory of the connection that has ended, if the function has settled; else
 * server->closing stays set. */
static void finish_disconnect(struct vnic_vfio_server *server)
{
	if (!server_settle(server))
		return;
	server->closing = false;
	dma_finish_unmap(server);
}

void vnic_vfio_server_disconnect(struct vnic_vfio_server *server)
{
	const struct vnic_vfio_attr *attr = &server->attr;

	if (server->connection.socket < 0)
		return;
	connection_close(&server->connection);
	server->reply_held = false;
	attr->ops.reset(attr->ctx);
	migration_end(server);
	dma_remove_all(server);
	irq_close(&server->irq);
	server->closing = true;
	finish_disconnect(server);
}

/* Sends the reply to the last message, or unmaps the last connection's memory, if one of the two
 * waits and the function has settled. True: it still waits. *rc: 0 or the error of the reply. */
static bool stays_held(struct vnic_vfio_server *server, int *rc)
{
	*rc = 0;
	if (server->reply_held)
		*rc = request_finish(server);
	else if (server->closing)
		finish_disconnect(server);
	return vnic_vfio_server_is_held(server);
}

static int handle_messages(struct vnic_vfio_server *server)
{
	int rc;

	if (stays_held(server, &rc) || rc)
		return rc;
	rc = connection_flush(&server->connection);
	for (int i = 0; i < MESSAGES && !rc && !connection_is_writing(&server->connection) &&
			!vnic_vfio_server_is_held(server);
	     i++) {
		rc = connection_receive(&server->connection);
		if (rc <= 0)
			return rc;
		rc = request_handle(server);
	}
	return rc;
}

int vnic_vfio_server_event(struct vnic_vfio_server *server)
{
	int rc;

	if (server->connection.socket < 0) {
		stays_held(server, &rc);
		return 0;
	}
	rc = handle_messages(server);
	if (rc < 0)
		vnic_vfio_server_disconnect(server);
	return rc;
}

void vnic_vfio_server_interrupt(struct vnic_vfio_server *server, uint32_t vector)
{
	if (server->connection.socket >= 0)
		irq_raise(&server->irq, vector);
}
