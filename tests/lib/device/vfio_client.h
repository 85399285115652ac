/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A client of the vfio-user protocol: plays the part of a hypervisor for one function, whose server
 * is in this process or in another one. Calls wait for the reply, and fail the program if a reply
 * is malformed.
 */
#ifndef URXE_TEST_VFIO_CLIENT_H
#define URXE_TEST_VFIO_CLIENT_H

#include <stddef.h>
#include <stdint.h>

/* States of linux/vfio.h (enum vfio_device_mig_state). */
enum vfio_state {
	VFIO_STATE_ERROR,
	VFIO_STATE_STOP,
	VFIO_STATE_RUNNING,
	VFIO_STATE_STOP_COPY,
	VFIO_STATE_RESUMING,
	VFIO_STATE_PRE_COPY = 6,
	VFIO_STATES,
};

#define VFIO_CLIENT_BODY 8192u
#define VFIO_CLIENT_DATA 4096u /* of one message of a migration */

struct vfio_client {
	int socket;
	/* Runs a server in this process, so that it replies; NULL: it is in another process. */
	void (*pump)(void *ctx);
	void *ctx;
	uint16_t id;
	/* Of the last reply. */
	uint32_t size; /* bytes of its body */
	uint8_t body[VFIO_CLIENT_BODY];
};

/* Sends VERSION. */
void vfio_client_open(struct vfio_client *c, int socket, void (*pump)(void *ctx), void *ctx);
/* Waits for the server at that path, for 5 s at most. */
void vfio_client_connect(struct vfio_client *c, const char *path);
void vfio_client_close(struct vfio_client *c);

/* Sends a command, with at most one descriptor (-1: none); returns the errno value of its reply. */
int vfio_ask(struct vfio_client *c, uint16_t command, const void *body, uint32_t size, int fd);

int vfio_map(struct vfio_client *c, uint64_t addr, uint64_t size, int fd, uint64_t offset);
void vfio_reset(struct vfio_client *c);
int vfio_write(struct vfio_client *c, uint32_t region, uint64_t offset, uint32_t value);
uint32_t vfio_read(struct vfio_client *c, uint32_t region, uint64_t offset);
/* Lets the function answer accesses to its BARs and access memory, as pci_enable_device and
 * pci_set_master in a driver do. */
void vfio_set_master(struct vfio_client *c);
/* Gives the MSI-X vector an eventfd. */
void vfio_set_eventfd(struct vfio_client *c, uint32_t vector, int fd);

/* --- Migration */

/* The errno value of a DEVICE_FEATURE command; its data are those of `data`, and the reply's are in
 * c->body behind 8 bytes. `argsz`: 0 = as long as a reply can be. */
int vfio_feature(struct vfio_client *c, uint32_t flags, const void *data, uint32_t size,
		 uint32_t argsz);
int vfio_set_state(struct vfio_client *c, enum vfio_state state);
enum vfio_state vfio_get_state(struct vfio_client *c);
/* Appends what the function has for the stream, in the state PRE_COPY or STOP_COPY, to *stream,
 * which the caller frees with free(3). */
void vfio_read_stream(struct vfio_client *c, uint8_t **stream, size_t *length);
int vfio_write_stream(struct vfio_client *c, const uint8_t *stream, size_t length);

int vfio_start_log(struct vfio_client *c);
int vfio_stop_log(struct vfio_client *c);
/* Sets the bits of pages of 4096 bytes; the bitmap stands for the bytes from `addr` on. */
void vfio_take_log(struct vfio_client *c, uint64_t addr, uint64_t size, uint64_t *bitmap);

#endif
