/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The private state of a vfio-user server, and the functions by which its files (request.c, dma.c,
 * vfio_region.c, vfio_server.c) call each other.
 */
#ifndef URXE_VNIC_VFIO_VFIO_SERVER_PRIVATE_H
#define URXE_VNIC_VFIO_VFIO_SERVER_PRIVATE_H

#include "config_space.h"
#include "connection.h"
#include "irq.h"
#include "migration.h"

/* Memory that the model no longer uses, and that is unmapped when the function has settled. */
struct dma_removal {
	bool pending;
	bool waited;         /* the function had not settled when server_settle last looked */
	uint64_t addr, size; /* size 0: all memory */
};

struct vnic_vfio_server {
	struct vnic_vfio_attr attr;
	struct config_space config;
	struct irq_vectors irq;
	bool version_known; /* the client has sent VERSION */
	struct connection connection;
	struct dma_removal removal;
	struct migration migration;
	bool handing_over; /* stopped between two messages, for another process */
	bool closing;      /* the rest of a disconnection waits for the function to settle */
	bool reply_held;   /* a message was handled, whose reply waits for the function to settle */
	int outcome; /* of that message: length of the reply's body, or a negative errno value */
};

/*
 * Handles the message in the connection, and replies, or leaves that to request_finish. Errors are
 * those of the connection.
 */
int request_handle(struct vnic_vfio_server *server);
/* If the function has settled: unmaps removed memory, and replies to the message that was held.
 * Else does nothing, and returns 0. */
int request_finish(struct vnic_vfio_server *server);
/*
 * Whether the function has settled (vnic_vfio_ops.settled), and uses no memory that is about to be
 * unmapped. During an earlier wait the guest's driver may have registered that memory anew, so the
 * call first withdraws the memory from the PCI function once more.
 */
bool server_settle(struct vnic_vfio_server *server);

/* Tells the model what the command register says about bus mastering. */
void server_apply_master(const struct vnic_vfio_server *server);

/* DMA_MAP and DMA_UNMAP, for request.c (dma.c). fd: the command's descriptor; -1: it has none. */
int dma_map(struct vnic_vfio_server *server, const struct vfio_user_dma_map *map, int fd);
int dma_unmap(struct vnic_vfio_server *server, const struct vfio_user_dma_unmap *unmap);
/* Removes all memory from the function; dma_finish_unmap unmaps it. */
void dma_remove_all(struct vnic_vfio_server *server);
/* Removes the memory of server->removal from the function once more. */
void dma_remove_again(struct vnic_vfio_server *server);
/* Unmaps what dma_unmap or dma_remove_all has removed; the function has settled. Returns 0, also if
 * there is nothing to unmap, or an error of vnic_guest_memory_unmap. */
int dma_finish_unmap(struct vnic_vfio_server *server);
/* Accesses of `count` bytes to a region of linux/vfio.h. -EINVAL: not in the region, or misaligned.
 * -EBUSY: a write to a BAR while a migration has stopped the function. */
int region_read(struct vnic_vfio_server *server, const struct vfio_user_access *access,
		uint8_t *data);
int region_write(struct vnic_vfio_server *server, const struct vfio_user_access *access,
		 const uint8_t *data);
/* Bytes of a region; 0 = none. */
uint32_t region_size(const struct vnic_vfio_server *server, uint32_t region);

#endif
