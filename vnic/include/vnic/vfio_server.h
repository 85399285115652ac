/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A PCI function that a hypervisor such as QEMU (-device vfio-user-pci) uses over a UNIX socket:
 * the server's side of the vfio-user protocol, version 0 (QEMU's docs/interop/vfio-user.rst).
 *
 * The server answers messages, keeps the configuration space, the guest's memory and the eventfds
 * of MSI-X vectors, and calls the function's model for registers. The client is not trusted: each
 * length, count and descriptor is checked, and a malformed message gets an errno value or ends the
 * connection.
 *
 * One thread at a time may use a server. Nothing blocks. Functions that return int give 0 or a
 * negative errno value. Integers of messages are in host byte order, as the protocol says.
 */
#ifndef URXE_VNIC_VFIO_SERVER_H
#define URXE_VNIC_VFIO_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <vnic/guest_memory.h>

#define VNIC_VFIO_BARS    6
#define VNIC_VFIO_VECTORS 64 /* most MSI-X vectors of a function */

struct vnic_vfio_server;

struct vnic_vfio_function {
	uint16_t vendor, device;
	uint16_t subsystem_vendor, subsystem;
	uint8_t revision;
	uint32_t class_code; /* 24 bits: class, subclass and programming interface */
	bool multifunction;  /* the slot has more functions; set in function 0 */
	/* Bytes of each 32-bit memory BAR: 0, or a power of two from 4096 to 2^30. */
	uint32_t bar_size[VNIC_VFIO_BARS];
	/*
	 * MSI-X: 1 to VNIC_VFIO_VECTORS. The table is at the start of the BAR, and the
	 * hypervisor's: the server stores nothing that is written there. The pending bits are
	 * behind the table, at a multiple of 8.
	 */
	uint32_t vectors;
	uint32_t msix_bar, pba_offset;
	/*
	 * A BAR other than the MSI-X BAR whose bytes are the first ones of the file mapped_fd,
	 * which the caller keeps open. The hypervisor maps the file, and then sends no messages for
	 * accesses. 0: no such BAR.
	 */
	uint32_t mapped_bar;
	int mapped_fd;
};

struct vnic_vfio_ops {
	/* A naturally aligned access of 1, 2, 4 or 8 bytes, outside MSI-X table and pending bits.
	 */
	uint64_t (*read)(void *ctx, uint32_t bar, uint32_t offset, uint32_t size);
	void (*write)(void *ctx, uint32_t bar, uint32_t offset, uint32_t size, uint64_t value);
	/* The function returns to its state after power-on, but for the right of bus_master, and
	 * uses no guest memory any more. */
	void (*reset)(void *ctx);
	/* [addr, addr + size) of the guest's memory is mapped. */
	void (*memory_added)(void *ctx, uint64_t addr, uint64_t size);
	/*
	 * The server will unmap this range, whether all of it is mapped or not: the model must not
	 * use a pointer to it after this call. Address 0 and size UINT64_MAX stand for all memory.
	 */
	void (*memory_removed)(void *ctx, uint64_t addr, uint64_t size);
	/*
	 * Returns true if no other process copies to or from guest memory that the model has
	 * withdrawn, and no poll of the guest waits: the guest polls a CQ by writing a register,
	 * and the reply may wait for a completion. The server asks after write, reset, bus_master,
	 * memory_removed, stop and logging. While the result is false, the server neither unmaps
	 * memory nor replies (vnic_vfio_server_is_held), unless it is destroyed. NULL: always true.
	 */
	bool (*settled)(void *ctx);
	/* The server has refused memory of the hypervisor's, with this negative errno value. May be
	 * NULL. */
	void (*memory_refused)(void *ctx, uint64_t addr, uint64_t size, int error);
	/* This range is lost (vnic/guest_memory.h); memory_removed was called. May be NULL. */
	void (*memory_lost)(void *ctx, uint64_t addr, uint64_t size);
	/*
	 * Whether the command register permits the function to access memory (bus mastering).
	 * Called when a client connects (false), after the client's reset (false), after `restore`
	 * (as saved), and when the driver changes the bit. `reset` must not change the right;
	 * `restore` grants it, until this call. May be NULL.
	 */
	void (*bus_master)(void *ctx, bool on);
};

/*
 * Live migration (vfio-user's DEVICE_FEATURE and MIG_DATA messages). While a function is stopped
 * its model accesses no guest memory, sends and receives nothing, and raises no interrupt. All
 * members are set, but `refused`, which may be NULL.
 */
struct vnic_vfio_migration_ops {
	/* The function stops; the server replies when `settled` returns true. */
	void (*stop)(void *ctx);
	/* The function goes on, after `stop` or `restore`, or in its state after `reset`. */
	void (*start)(void *ctx);
	/* Writes the model's state; the server frees the stream with free(3). */
	int (*save)(void *ctx, uint8_t **stream, size_t *length);
	/*
	 * Makes the stopped model that of the stream. The guest's memory is mapped; its contents
	 * may arrive later, but before `start`. After an error the model is as after `reset`.
	 */
	int (*restore)(void *ctx, const uint8_t *stream, size_t length);
	/* The server, or `restore`, has refused the stream of a migration with this negative errno
	 * value. */
	void (*refused)(void *ctx, int error);
	/*
	 * The server turns the logging of dirty pages on or off. While it is on, also after
	 * `reset`, other processes must not write to the guest's memory; the server replies when
	 * `settled` returns true.
	 */
	void (*logging)(void *ctx, bool on);
	/*
	 * Marks the pages dirty that were written without a mark: those that the model writes to
	 * all the time, and those to which an HCA may have written. The server reads the log
	 * afterwards.
	 */
	void (*mark)(void *ctx);
};

struct vnic_vfio_attr {
	struct vnic_vfio_function function;
	struct vnic_guest_memory *memory; /* the server alone maps and unmaps it */
	struct vnic_vfio_ops ops;         /* all are set, but those that may be NULL */
	const struct vnic_vfio_migration_ops *migration; /* NULL: no migration */
	void *ctx;
};

/* Creates a server without a client. -EINVAL: attr->function is not valid. */
int vnic_vfio_server_create(const struct vnic_vfio_attr *attr, struct vnic_vfio_server **server);
/*
 * Ends the connection first, and waits for nothing. NULL is ignored. The function of a server that
 * is stopped for another process is not reset.
 */
void vnic_vfio_server_destroy(struct vnic_vfio_server *server);

/*
 * Takes over a non-blocking stream socket to a client. -EBUSY: a client is connected; the caller
 * keeps the socket.
 */
int vnic_vfio_server_connect(struct vnic_vfio_server *server, int socket);
/* The client's socket; -1: no client. */
int vnic_vfio_server_fd(const struct vnic_vfio_server *server);
/*
 * Whether a reply waits for room in the socket: then the server reads no further message until the
 * socket is writable.
 */
bool vnic_vfio_server_is_writing(const struct vnic_vfio_server *server);
/*
 * Whether a reply, or the unmapping of memory after the end of a connection, waits for `settled`.
 * Then the server handles no message. Call vnic_vfio_server_event repeatedly: each call asks
 * `settled` again.
 */
bool vnic_vfio_server_is_held(const struct vnic_vfio_server *server);
/*
 * Handles a bounded number of messages. On error the client is disconnected. -ECONNRESET: the
 * client closed the connection; -EPROTO: it broke the protocol.
 */
int vnic_vfio_server_event(struct vnic_vfio_server *server);
/* Withdraws from the function the memory that was lost since the last call. Call it after each use
 * of guest memory, before the caller sleeps. */
void vnic_vfio_server_check_memory(struct vnic_vfio_server *server);
/*
 * Closes the connection, calls `reset`, and unmaps all memory. The server may unmap it later, when
 * `settled` returns true; a next client waits for an answer until then.
 */
void vnic_vfio_server_disconnect(struct vnic_vfio_server *server);

/* --- Replacement of the process: the server of another process goes on with the connection. */

/* Descriptors of a server at most: the connection, eventfds, and files of the guest's memory. */
#define VNIC_VFIO_FDS (1u + VNIC_VFIO_VECTORS + VNIC_GUEST_REGIONS)

/* A server and its function as a stream, and the descriptors to which the stream refers. */
struct vnic_vfio_handover {
	uint8_t *stream; /* freed with free(3) */
	size_t length;
	uint32_t n_fds;
	int fds[VNIC_VFIO_FDS];
};

/*
 * Stops the function between two messages, also without a client; needs attr.migration.
 * vnic_vfio_server_event must not be called until vnic_vfio_server_resume. -EAGAIN: a
 * message has arrived in part, or a reply is not sent yet; call it again after
 * vnic_vfio_server_event. -EBUSY: the client migrates the function.
 */
int vnic_vfio_server_stop(struct vnic_vfio_server *server);
/* The stopped function goes on in this process. */
void vnic_vfio_server_resume(struct vnic_vfio_server *server);
/*
 * Saves the stopped function. The descriptors in *h stay the server's. -EAGAIN: the function has
 * not settled; call it again. -ENOMEM, or an error of the model.
 */
int vnic_vfio_server_hand_over(struct vnic_vfio_server *server, struct vnic_vfio_handover *h);
/*
 * Loads *h into `server`, which the caller has created and which never had a client. The server
 * gets the client of *h, and the function stays stopped. The guest's memory is mapped, but not
 * accessed, because the other process may still go on. The stream and the descriptors may come from
 * a hostile process. Descriptors that the server keeps are replaced by -1 in h->fds. After an error
 * the server can only be destroyed. -EBADMSG: the stream is damaged, or contradicts the
 * descriptors; -EPROTONOSUPPORT: of a later version; -EINVAL: of another kind of function, or a
 * vector's descriptor is no eventfd; an error of vnic_guest_memory_map, or the model's.
 */
int vnic_vfio_server_take_over(struct vnic_vfio_server *server, struct vnic_vfio_handover *h);

/*
 * Delivers the interrupt of a vector, if the server has a client. An interrupt of a masked vector,
 * or of one without an eventfd, sets the vector's pending bit and is delivered later.
 */
void vnic_vfio_server_interrupt(struct vnic_vfio_server *server, uint32_t vector);

#endif
