/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A vfio-user server of one PCI function, with a model that notes what it is asked for, and the
 * client of the server by hand. The server runs within the client's calls.
 */
#ifndef URXE_TEST_VFIO_FIXTURE_H
#define URXE_TEST_VFIO_FIXTURE_H

#include <linux/vfio.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vnic/vfio_server.h>

#define PAGE       UINT64_C(4096)
#define PAGES      UINT64_C(16)
#define VECTORS    25
#define IS_COMMAND 0u
#define IS_REPLY   1u
#define NO_REPLY   0x10u
#define ERROR      0x20u

enum command {
	VERSION = 1,
	DMA_MAP,
	DMA_UNMAP,
	GET_INFO,
	GET_REGION_INFO,
	GET_REGION_IO_FDS,
	GET_IRQ_INFO,
	SET_IRQS,
	REGION_READ,
	REGION_WRITE,
	DMA_READ,
	RESET = 13,
	WRITE_MULTI = 15,
};

struct header {
	uint16_t id, command;
	uint32_t size, flags, error;
};

/* What the model was asked for. */
struct access {
	uint32_t bar, offset, size;
	uint64_t value;
};

struct fixture {
	struct vnic_guest_memory *memory;
	struct vnic_vfio_server *server;
	int client; /* the client's end */
	int file;   /* of PAGES pages */
	int bar;    /* the file that BAR1 is mapped from */
	struct access last;
	bool master;
	uint32_t master_changes;
	uint32_t writes, resets, added, removed;
	uint64_t removed_addr, removed_size;
	uint32_t lost;
	uint64_t lost_addr, lost_size;
	int refusal;
	bool unsettled;
	uint16_t id;
	/* The last reply, its descriptor, -1 for none, and the bytes of its body. */
	struct header reply;
	int reply_fd;
	uint8_t body[8192];
};

/* The capabilities of VERSION. */
#define VFIO_OFFER "\0\0\0\0{\"capabilities\":{\"max_msg_fds\":8,\"write_multiple\" : true}}"

extern const struct vnic_vfio_function vfio_function;

/* For cmocka: a connected client, before VERSION; after it; and their end. */
int vfio_setup_unversioned(void **state);
int vfio_setup(void **state);
int vfio_teardown(void **state);
/* As vfio_setup_unversioned, with another function. */
int vfio_setup_function(void **state, const struct vnic_vfio_function *served);

/* --- The client */

/* Another client; the one before has ended. */
void connect_client(struct fixture *f);
void send_bytes(struct fixture *f, const void *bytes, size_t n, const int *fds, uint32_t n_fds);
/* Writes a command to `to`, and returns its length. */
size_t build(struct fixture *f, uint8_t *to, uint16_t command, uint32_t flags, const void *body,
	     uint32_t size);
/* Reads a reply into f->reply and f->body; false: there is none. */
bool read_reply(struct fixture *f);
/* Sends a command and returns the errno value of its reply. */
int ask_with(struct fixture *f, uint16_t command, const void *body, uint32_t size, const int *fds,
	     uint32_t n_fds);
int ask(struct fixture *f, uint16_t command, const void *body, uint32_t size);
/* Of the last reply. */
uint32_t body_size(const struct fixture *f);
/* The server has closed the connection, after the model's reset. */
void expect_closed(struct fixture *f, int rc);
uint32_t count_fds(void);

/* --- Regions */

struct access_message {
	uint64_t offset;
	uint32_t region, count;
	uint8_t data[8];
};

int read_region(struct fixture *f, uint32_t region, uint64_t offset, uint32_t count);
int write_region(struct fixture *f, uint32_t region, uint64_t offset, uint32_t count,
		 uint64_t value);
uint32_t read_config(struct fixture *f, uint32_t offset, uint32_t count);
void write_config(struct fixture *f, uint32_t offset, uint32_t count, uint32_t value);

/* --- Memory */

struct map {
	uint32_t argsz, flags;
	uint64_t offset, addr, size;
};

int map(struct fixture *f, uint64_t addr, uint64_t pages, uint32_t flags, bool with_fd);
int unmap(struct fixture *f, uint64_t addr, uint64_t pages, uint32_t flags);

/* --- Interrupts */

struct irqs {
	uint32_t argsz, flags, index, start, count;
	uint8_t data[64];
};

#define TRIGGER   VFIO_IRQ_SET_ACTION_TRIGGER
#define MASK      VFIO_IRQ_SET_ACTION_MASK
#define UNMASK    VFIO_IRQ_SET_ACTION_UNMASK
#define WITH_FD   VFIO_IRQ_SET_DATA_EVENTFD
#define WITH_NONE VFIO_IRQ_SET_DATA_NONE
#define WITH_BOOL VFIO_IRQ_SET_DATA_BOOL

int set_irqs(struct fixture *f, uint32_t flags, uint32_t start, uint32_t count, const int *fds,
	     uint32_t n_fds);
uint64_t take(int fd);
uint32_t pending(struct fixture *f);

#endif
