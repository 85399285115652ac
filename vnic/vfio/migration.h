/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Live migration of a PCI function: the states of linux/vfio.h (enum vfio_device_mig_state) without
 * those of P2P, the stream of the function's state, and the log of written pages.
 */
#ifndef URXE_VNIC_VFIO_MIGRATION_H
#define URXE_VNIC_VFIO_MIGRATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a page in the log. */
#define MIGRATION_LOG_PAGE 4096u

/* Values of enum vfio_device_mig_state; linux/vfio.h of Debian 12 lacks MIGRATION_PRE_COPY. */
enum migration_state {
	MIGRATION_ERROR,
	MIGRATION_STOP,
	MIGRATION_RUNNING,
	MIGRATION_STOP_COPY,
	MIGRATION_RESUMING,
	MIGRATION_PRE_COPY = 6,
	MIGRATION_STATES,
};

struct migration {
	enum migration_state state;
	bool save_due; /* the next migration_save saves the function */
	bool logging;
	/* STOP_COPY: the stream, of which `at` bytes were read. RESUMING: the stream so far. */
	uint8_t *stream;
	size_t length, at, room;
};

struct vnic_vfio_server;

/* A new connection, or a reset of the function: RUNNING, without a stream. A log goes on. The
 * caller has reset the function's model. */
void migration_reset(struct vnic_vfio_server *server);
/* The end of a connection: ends the log, then as migration_reset. */
void migration_end(struct vnic_vfio_server *server);
/* Whether the PCI function works: RUNNING or PRE_COPY. */
bool migration_is_running(const struct vnic_vfio_server *server);
/* Saves the PCI function if it has just entered STOP_COPY; else returns 0. The caller has waited
 * until the model is settled (vnic_vfio_ops.settled). After an error the state is STOP. */
int migration_save(struct vnic_vfio_server *server);

/*
 * DEVICE_FEATURE, MIG_DATA_READ and MIG_DATA_WRITE: the body of the command, and room for that of
 * the reply. Each returns the length of the reply's body, or a negative errno value. -ENOTTY: the
 * function, or the server, does not have the feature.
 */
int migration_feature(struct vnic_vfio_server *server, const uint8_t *body, uint32_t size,
		      uint8_t *reply, uint32_t room);
int migration_read(struct vnic_vfio_server *server, const uint8_t *body, uint32_t size,
		   uint8_t *reply, uint32_t room);
int migration_write(struct vnic_vfio_server *server, const uint8_t *body, uint32_t size);

#endif
