/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A PCI function of the virtual machine's device: its socket, its vfio-user server, and the guest's
 * memory as the hypervisor has mapped it for this function. vmxnet3_function.h and
 * pvrdma_function.h have the models.
 */
#ifndef URXE_VM_DEVICE_FUNCTION_H
#define URXE_VM_DEVICE_FUNCTION_H

#include <stdbool.h>
#include <stdint.h>

#include <vnic/vfio_server.h>

#include "vm/device/listen_socket.h"

#define FUNCTION_ERROR 256

#define PCI_VENDOR_VMWARE 0x15ad
/* Bytes of the BAR that has the MSI-X table, and the offset of the pending bits in it. */
#define MSIX_BAR_SIZE 8192
#define PBA_OFFSET    4096

/* Callbacks of the device process (vm.c) for the migration of a function. */
struct function_owner {
	/* The function is about to pause: the callee sends the frames that still wait. */
	void (*pausing)(void *ctx);
	/* `paused` or `logging` of a function has changed. */
	void (*changed)(void *ctx);
	/* The function's state is about to be saved; the machine may go on at another host. */
	void (*saving)(void *ctx);
	void *ctx;
};

struct function {
	const char *name; /* for log lines */
	struct listen_socket listener;
	struct vnic_guest_memory *memory;
	struct vnic_vfio_server *server;
	int watched;     /* the client's socket in the epoll set; -1 = none */
	uint32_t events; /* epoll events for which that socket is watched */
	uint32_t lost;   /* ranges of this client's memory that were lost (vnic/guest_memory.h) */
	const struct function_owner *owner; /* NULL: no callbacks */
	bool paused;                        /* from the model's callback `stop` to `start` */
	bool logging;                       /* peers must not write to the machine's memory */
};

/* Makes f->memory. The caller then creates the model, which needs it, and calls function_serve.
 * Returns 0 or a negative errno value. */
int function_init(struct function *f, const char *name);
/*
 * Makes the server and listens at `path`; NULL: the caller sets f->listener later. Sets
 * attr->memory; the caller sets the rest. Returns 0, or a negative errno value and a sentence in
 * `error`; then the caller still calls function_close.
 */
int function_serve(struct function *f, const char *path, struct vnic_vfio_attr *attr,
		   char error[FUNCTION_ERROR]);
/*
 * Destroys the server, which ends the connection and resets the model: so the model must still
 * exist. Accepts a zeroed structure.
 */
void function_stop(struct function *f);
/* Closes the listening socket and frees f->memory; the caller has destroyed the model. */
void function_close(struct function *f);

/* When the listening socket is readable: accepts a client, or refuses a second one. */
void function_accept(struct function *f, int epoll_fd);
/* Watches the client that the server has taken over, if any. 0 or a negative errno value. */
int function_adopt_client(struct function *f, int epoll_fd);
/*
 * When the client's socket is readable or writable: handles its messages. While the server is held
 * (vnic_vfio_server_is_held), call it again every 50 us.
 */
void function_event(struct function *f, int epoll_fd);
/* Call it after each use of the guest's memory. Withdraws from the model the pages that were lost
 * meanwhile (SIGBUS). True: there were some, and the model may have work. */
bool function_check_memory(struct function *f);

/*
 * The models call these in their callbacks of struct vnic_vfio_migration_ops: `stop` calls
 * function_pausing and then function_set_paused(true), `start` function_set_paused(false), `save`
 * function_saving.
 */
void function_pausing(struct function *f);
void function_set_paused(struct function *f, bool paused);
void function_saving(struct function *f);

/*
 * Callbacks of both models, whose first member is the struct function: `logging` and `refused` of
 * struct vnic_vfio_migration_ops, `memory_refused` and `memory_lost` of struct vnic_vfio_ops, and
 * the interrupt of a vector.
 */
void function_set_logging(void *ctx, bool on);
void function_state_refused(void *ctx, int error);
void function_memory_refused(void *ctx, uint64_t addr, uint64_t size, int error);
void function_memory_lost(void *ctx, uint64_t addr, uint64_t size);
void function_interrupt(void *ctx, uint32_t vector);

#endif
