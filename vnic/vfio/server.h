/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The private state of a vfio-user server. */
#ifndef URXE_VNIC_VFIO_SERVER_PRIVATE_H
#define URXE_VNIC_VFIO_SERVER_PRIVATE_H

#include "config_space.h"
#include "connection.h"
#include "irq.h"

struct vnic_vfio_server {
	struct vnic_vfio_attr attr;
	struct config_space config;
	struct irq_vectors irq;
	bool version_known; /* the client has sent VERSION */
	struct connection connection;
};

/* Handles the message in the connection, and replies. Errors are those of the connection. */
int request_handle(struct vnic_vfio_server *server);

/* Handlers of request.c that have a file of their own; body and fds as the command has them. */
int dma_map(struct vnic_vfio_server *server, const struct vfio_user_dma_map *map, int fd);
int dma_unmap(struct vnic_vfio_server *server, const struct vfio_user_dma_unmap *unmap);
void dma_unmap_all(struct vnic_vfio_server *server);
/* Accesses of `count` bytes to a region of linux/vfio.h. -EINVAL: not in the region, or misaligned.
 */
int region_read(struct vnic_vfio_server *server, const struct vfio_user_access *access,
		uint8_t *data);
int region_write(struct vnic_vfio_server *server, const struct vfio_user_access *access,
		 const uint8_t *data);
/* Bytes of a region; 0 = none. */
uint32_t region_size(const struct vnic_vfio_server *server, uint32_t region);

#endif
