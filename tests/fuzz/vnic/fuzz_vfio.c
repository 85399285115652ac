/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A hostile hypervisor: the script sends vfio-user messages, whole and in parts, with any fields
 * and descriptors, reads replies or does not, hangs up and connects again; the function raises
 * interrupts meanwhile, and the file of the memory is shortened. The model must see only accesses
 * that its BARs have, each mapped byte must be readable until its removal, and at the end no
 * descriptor and no memory may be left.
 */
#include <linux/vfio.h>
#include <stdbool.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vnic/vfio_server.h>

#include "require.h"
#include "vfio_message.h"

#define PAGE      4096u
#define MAX_STEPS 200

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct lab {
	struct script in;
	struct vnic_guest_memory *memory;
	struct vnic_vfio_server *server;
	int client, file, event;
	uint32_t sum;
};

/* --- The model */

static uint64_t model_read(void *ctx, uint32_t bar, uint32_t offset, uint32_t size)
{
	(void)ctx;
	vfio_message_check_access(bar, offset, size);
	return UINT64_MAX;
}

static void model_write(void *ctx, uint32_t bar, uint32_t offset, uint32_t size, uint64_t value)
{
	struct lab *lab = ctx;

	vfio_message_check_access(bar, offset, size);
	/* A model may raise an interrupt in a write. */
	if (value & 1)
		vnic_vfio_server_interrupt(lab->server, offset % 64);
}

static void model_reset(void *ctx)
{
	(void)ctx;
}

/* Reads a byte of each page of all regions: none may be unmapped. */
static void touch_memory(struct lab *lab)
{
	const struct vnic_guest_region *regions;
	uint32_t count;

	regions = vnic_guest_memory_regions(lab->memory, &count);
	for (uint32_t i = 0; i < count; i++)
		for (uint64_t at = 0; at < regions[i].size; at += PAGE)
			lab->sum += ((volatile uint8_t *)regions[i].memory)[at];
}

static void model_memory(void *ctx, uint64_t addr, uint64_t size)
{
	require(size && addr + (size - 1) >= addr);
	touch_memory(ctx);
}

/* The right to access memory changes, and not the memory. */
static void model_bus_master(void *ctx, bool on)
{
	(void)on;
	touch_memory(ctx);
}

static void model_memory_refused(void *ctx, uint64_t addr, uint64_t size, int error)
{
	(void)ctx, (void)addr;
	require(size && error < 0);
}

/* The server has withdrawn these bytes, and no region has them any more. */
static void model_memory_lost(void *ctx, uint64_t addr, uint64_t size)
{
	const struct lab *lab = ctx;
	uint64_t part = 1;

	require(size && addr % PAGE == 0 && size % PAGE == 0);
	require(!vnic_guest_memory_at(lab->memory, addr, &part, false));
	require(!vnic_guest_memory_at(lab->memory, addr + size - PAGE, &part, false));
}

/* The hypervisor shortens the file, the model uses the memory, and the file grows again. */
static void lose_memory(struct lab *lab)
{
	require(!ftruncate(lab->file, script_get8(&lab->in) % VFIO_MESSAGE_PAGES * PAGE));
	touch_memory(lab);
	if (script_get8(&lab->in) & 1)
		vnic_vfio_server_check_memory(lab->server);
	require(!ftruncate(lab->file, VFIO_MESSAGE_PAGES * PAGE));
	vnic_vfio_server_check_memory(lab->server);
	touch_memory(lab);
}

/* --- The client */

static void connect_client(struct lab *lab)
{
	int ends[2];

	require(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends));
	require(!vnic_vfio_server_connect(lab->server, ends[0]));
	lab->client = ends[1];
}

static void send_bytes(struct lab *lab, const uint8_t *bytes, uint32_t n, uint32_t n_fds)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(VFIO_MESSAGE_FDS * sizeof(int))];
	} control = {0};
	struct iovec part = {(void *)(uintptr_t)bytes, n};
	struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1};
	struct cmsghdr *cmsg;

	if (n_fds) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		for (uint32_t i = 0; i < n_fds; i++)
			memcpy(CMSG_DATA(cmsg) + i * sizeof(int), i & 1 ? &lab->event : &lab->file,
			       sizeof(int));
		/* One descriptor: of the kind that the message wants, or the other one. */
		if (n_fds == 1 && script_get8(&lab->in) & 1)
			memcpy(CMSG_DATA(cmsg), &lab->event, sizeof(int));
	}
	if (sendmsg(lab->client, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return;
}

static void serve(struct lab *lab)
{
	uint32_t regions;

	if (vnic_vfio_server_event(lab->server) >= 0)
		return;
	require(vnic_vfio_server_fd(lab->server) == -1);
	vnic_guest_memory_regions(lab->memory, &regions);
	require(!regions);
	close(lab->client);
	connect_client(lab);
}

static void read_replies(struct lab *lab)
{
	uint8_t bytes[4096];

	while (recv(lab->client, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		serve(lab);
}

static void send_command(struct lab *lab)
{
	struct vfio_message m;

	vfio_message_fill(&lab->in, &m);
	if (m.cut) {
		send_bytes(lab, m.bytes, m.cut, m.fds);
		serve(lab);
	}
	send_bytes(lab, m.bytes + m.cut, m.n - m.cut, m.fds);
}

static void send_noise(struct lab *lab)
{
	uint8_t bytes[64];

	send_bytes(lab, bytes,
		   vfio_message_bytes(&lab->in, bytes, 1 + script_get8(&lab->in) % sizeof(bytes)),
		   script_get8(&lab->in) % 3);
}

static void greet(struct lab *lab)
{
	static const uint8_t version[] = {0, 0, 1, 0, 20, 0, 0, 0, 0, 0,
					  0, 0, 0, 0, 0,  0, 0, 0, 0, 0};

	send_bytes(lab, version, sizeof(version), 0);
	serve(lab);
}

static void step(struct lab *lab)
{
	switch (script_get8(&lab->in) % 16) {
	case 0: send_noise(lab); break;
	case 1: vnic_vfio_server_interrupt(lab->server, script_get8(&lab->in)); break;
	case 2: read_replies(lab); break;
	case 3:
		shutdown(lab->client, SHUT_WR);
		serve(lab);
		break;
	case 4: greet(lab); break;
	case 5: touch_memory(lab); break;
	case 6: lose_memory(lab); break;
	default: send_command(lab);
	}
	serve(lab);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int file = -1, event;
	struct lab lab = {.in = {data, size}};
	struct vnic_vfio_attr attr = {.function = vfio_message_function,
				      .ops =
					      {
						      .read = model_read,
						      .write = model_write,
						      .reset = model_reset,
						      .memory_added = model_memory,
						      .memory_removed = model_memory,
						      .bus_master = model_bus_master,
						      .memory_refused = model_memory_refused,
						      .memory_lost = model_memory_lost,
					      },
				      .ctx = &lab};
	int probe;

	if (file < 0) {
		file = memfd_create("guest", MFD_CLOEXEC);
		event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		require(file >= 0 && event >= 0 && !ftruncate(file, VFIO_MESSAGE_PAGES * PAGE));
		require(!vnic_guest_memory_catch_faults(NULL, NULL));
	}
	lab.file = file;
	lab.event = event;
	probe = dup(file);
	close(probe);
	require(!vnic_guest_memory_create(&lab.memory));
	attr.memory = lab.memory;
	attr.function.mapped_bar = 1;
	attr.function.mapped_fd = file;
	require(!vnic_vfio_server_create(&attr, &lab.server));
	connect_client(&lab);
	greet(&lab);
	for (uint32_t i = 0; i < MAX_STEPS && lab.in.left; i++)
		step(&lab);
	vnic_vfio_server_destroy(lab.server);
	vnic_guest_memory_destroy(lab.memory);
	close(lab.client);
	/* No descriptor is left: the next one has the number that it had before. */
	lab.client = dup(file);
	require(lab.client == probe);
	close(lab.client);
	return 0;
}
