/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "uring.h"

#include <err.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "file.h"
#include "fork.h"
#include "region.h"
#include "row.h"
#include "snapshot.h"

/* Opcodes of Linux 5.18 and 6.3, which Debian 12's headers lack. */
#define REGISTER_RING_FDS     20
#define ENTER_REGISTERED_RING (1u << 4)

static int map_rings(struct uring *ring, const struct io_uring_params *params)
{
	size_t sq = params->sq_off.array + params->sq_entries * sizeof(unsigned int);
	size_t cq = params->cq_off.cqes + params->cq_entries * sizeof(struct io_uring_cqe);
	size_t size = sq > cq ? sq : cq;
	uint8_t *rings =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, IORING_OFF_SQ_RING);

	if (rings == MAP_FAILED)
		return -1;
	ring->sqes = mmap(NULL, params->sq_entries * sizeof(struct io_uring_sqe),
			  PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, IORING_OFF_SQES);
	if (ring->sqes == MAP_FAILED)
		return -1;
	ring->sq_tail = (unsigned int *)(rings + params->sq_off.tail);
	ring->sq_mask = (unsigned int *)(rings + params->sq_off.ring_mask);
	ring->sq_array = (unsigned int *)(rings + params->sq_off.array);
	ring->cq_head = (unsigned int *)(rings + params->cq_off.head);
	ring->cq_tail = (unsigned int *)(rings + params->cq_off.tail);
	ring->cq_mask = (unsigned int *)(rings + params->cq_off.ring_mask);
	ring->cqes = (struct io_uring_cqe *)(rings + params->cq_off.cqes);
	return 0;
}

int uring_open(struct uring *ring)
{
	struct io_uring_params params = {0};

	*ring = (struct uring){.fd = (int)syscall(SYS_io_uring_setup, 8, &params)};
	return ring->fd < 0 ? -1 : map_rings(ring, &params);
}

int uring_register_buffer(struct uring *ring, void *bytes, size_t size)
{
	struct iovec buffer = {bytes, size};

	return (int)syscall(SYS_io_uring_register, ring->fd, IORING_REGISTER_BUFFERS, &buffer, 1);
}

/* Registers the ring descriptor and closes it, as io_uring_register_ring_fd and
 * io_uring_close_ring_fd. */
static int uring_close_descriptor(struct uring *ring)
{
	/* struct io_uring_rsrc_update */
	struct {
		uint32_t offset, reserved;
		uint64_t data;
	} update = {.offset = UINT32_MAX, .data = (uint64_t)ring->fd};

	if (syscall(SYS_io_uring_register, ring->fd, REGISTER_RING_FDS, &update, 1) != 1)
		return -1;
	ring->registered = true;
	ring->index = update.offset;
	close(ring->fd);
	ring->fd = -1;
	return 0;
}

static int enter(const struct uring *ring)
{
	unsigned int flags = IORING_ENTER_GETEVENTS;

	if (ring->registered)
		flags |= ENTER_REGISTERED_RING;
	return (int)syscall(SYS_io_uring_enter, ring->registered ? (int)ring->index : ring->fd, 1,
			    1, flags, NULL, 0);
}

/* Runs IORING_OP_READ_FIXED or _WRITE_FIXED on buffer 0; returns the completion's result. */
static int uring_run_fixed(struct uring *ring, int opcode, int fd, void *bytes, size_t size)
{
	unsigned int tail = *ring->sq_tail, slot = tail & *ring->sq_mask, head = *ring->cq_head;
	int result;

	ring->sqes[slot] = (struct io_uring_sqe){.opcode = (uint8_t)opcode,
						 .fd = fd,
						 .addr = (uintptr_t)bytes,
						 .len = (uint32_t)size};
	ring->sq_array[slot] = slot;
	__atomic_store_n(ring->sq_tail, tail + 1, __ATOMIC_RELEASE);
	if (enter(ring) < 0)
		err(1, "io_uring_enter");
	if (__atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE) == head)
		errx(1, "io_uring completes nothing");
	result = ring->cqes[head & *ring->cq_mask].res;
	__atomic_store_n(ring->cq_head, head + 1, __ATOMIC_RELEASE);
	return result;
}

/* --- Rows */

enum { KEEP_DESCRIPTOR, CLOSE_DESCRIPTOR };

static void open_with_buffer(struct uring *ring, struct region *region, uintptr_t how)
{
	skip_unless(!uring_open(ring), "io_uring_setup");
	skip_unless(!uring_register_buffer(ring, region->bytes, region->size),
		    "IORING_REGISTER_BUFFERS");
	if (how == CLOSE_DESCRIPTOR)
		skip_unless(!uring_close_descriptor(ring), "IORING_REGISTER_RING_FDS");
}

static void say_read(struct uring *ring, struct region *region, int fd)
{
	int read = uring_run_fixed(ring, IORING_OP_READ_FIXED, fd, region->bytes, PAGE);

	say("READ_FIXED returns %d, byte %#x", read, region->bytes[0]);
}

/* The buffer is pinned before the first traffic, and read to after more of it. */
static void read_fixed(uintptr_t how)
{
	struct region region = region_map(MIB);
	struct uring ring;
	int fd = file_make(PAGE, 0x42);

	region.bytes[0] = 1;
	open_with_buffer(&ring, &region, how);
	region_fill(&region, 3);
	say_read(&ring, &region, fd);
	region_fill(&region, 4);
	say_read(&ring, &region, fd);
	region_unmap(&region);
}

static void read_fixed_after_traffic(uintptr_t how)
{
	struct region region = region_map(MIB);
	struct uring ring;
	int fd = file_make(PAGE, 0x42);

	region_fill(&region, 3);
	open_with_buffer(&ring, &region, how);
	say_read(&ring, &region, fd);
	region_fill(&region, 4);
	say_read(&ring, &region, fd);
	region_unmap(&region);
}

/* The program registers the buffer with the ring first, and with the device afterwards. */
static void read_fixed_before_registering(uintptr_t how)
{
	uint8_t *bytes = region_reserve(MIB);
	struct region region = {.bytes = bytes, .size = MIB};
	struct uring ring;
	int fd = file_make(PAGE, 0x42);

	memset(bytes, 7, MIB);
	open_with_buffer(&ring, &region, how);
	region = region_register(bytes, MIB);
	say_read(&ring, &region, fd);
	region_fill(&region, 3);
	say_read(&ring, &region, fd);
	region_unmap(&region);
}

static void write_fixed(uintptr_t how)
{
	struct region region = region_map(MIB);
	struct uring ring;
	int fd = file_make(PAGE, 0), written;
	uint8_t byte = 0;

	region.bytes[0] = 1;
	open_with_buffer(&ring, &region, how);
	region_fill(&region, 9);
	written = uring_run_fixed(&ring, IORING_OP_WRITE_FIXED, fd, region.bytes, PAGE);
	say("WRITE_FIXED returns %d", written);
	say("the file holds: %zd byte %#x", pread(fd, &byte, 1, PAGE - 1), byte);
	region_unmap(&region);
}

/* The ring reads into the parent's memory, and the child keeps the bytes as of the fork. */
static void read_beside_child(struct uring *ring, struct region *region, int fd,
			      pid_t (*make_child)(void))
{
	int go[2], status;
	pid_t child;
	char byte;

	if (pipe(go))
		err(1, "pipe");
	region_fill(region, 3);
	child = make_child();
	if (child < 0)
		err(1, "fork");
	if (!child)
		_exit(read(go[0], &byte, 1) == 1 ? region->bytes[0] : 0);
	say_read(ring, region, fd);
	if (write(go[1], "", 1) != 1)
		err(1, "write");
	if (waitpid(child, &status, 0) != child)
		err(1, "waitpid");
	say("the child sees byte %#x, status %#x", WEXITSTATUS(status), (unsigned int)status);
	close(go[0]);
	close(go[1]);
}

/* The argument is a size, a multiple of PAGE, plus what open_with_buffer does. */
static void read_fixed_beside_children(uintptr_t row)
{
	struct region region = region_map(row & ~(PAGE - 1));
	struct uring ring;
	int fd = file_make(PAGE, 0x42);

	open_with_buffer(&ring, &region, row & (PAGE - 1));
	for (const struct fork_way *way = fork_ways; way->name; way++) {
		/* A large region is slow; fork(2), the first way, suffices. */
		if ((region.size > MIB && way != fork_ways) || !fork_way_works(way))
			continue;
		say("%s:", way->name);
		read_beside_child(&ring, &region, fd, way->make_child);
	}
	region_fill(&region, 4);
	say("the memory holds what the peer wrote then: %s", region_says(&region, 4));
	say_read(&ring, &region, fd);
	region_unmap(&region);
}

const struct row uring_rows[] = {
	{"read_fixed", read_fixed, KEEP_DESCRIPTOR},
	{"read_fixed_descriptor_closed", read_fixed, CLOSE_DESCRIPTOR},
	{"read_fixed_after_traffic", read_fixed_after_traffic, KEEP_DESCRIPTOR},
	{"read_fixed_after_traffic_descriptor_closed", read_fixed_after_traffic, CLOSE_DESCRIPTOR},
	{"read_fixed_before_registering", read_fixed_before_registering, KEEP_DESCRIPTOR},
	{"read_fixed_before_registering_descriptor_closed", read_fixed_before_registering,
	 CLOSE_DESCRIPTOR},
	{"write_fixed", write_fixed, KEEP_DESCRIPTOR},
	{"write_fixed_descriptor_closed", write_fixed, CLOSE_DESCRIPTOR},
	{"read_fixed_beside_children_1_page", read_fixed_beside_children, PAGE + KEEP_DESCRIPTOR},
	{"read_fixed_beside_children_1_mib", read_fixed_beside_children, MIB + KEEP_DESCRIPTOR},
	{"read_fixed_beside_children_64_mib", read_fixed_beside_children,
	 64 * MIB + KEEP_DESCRIPTOR},
	{"read_fixed_beside_children_descriptor_closed", read_fixed_beside_children,
	 MIB + CLOSE_DESCRIPTOR},
	{0},
};
