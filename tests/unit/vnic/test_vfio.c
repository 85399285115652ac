/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The vfio-user server against a client by hand: each message, and what is wrong with messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

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
	uint32_t writes, resets, disconnects, added, removed;
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

static const struct vnic_vfio_function function = {
	.vendor = 0x15ad,
	.device = 0x07b0,
	.subsystem_vendor = 0x15ae,
	.subsystem = 0x07b1,
	.revision = 1,
	.class_code = 0x020000,
	.multifunction = true,
	.bar_size = {4096, 4096, 8192},
	.vectors = VECTORS,
	.msix_bar = 2,
	.pba_offset = 4096,
};

/* --- The model */

static uint64_t model_read(void *ctx, uint32_t bar, uint32_t offset, uint32_t size)
{
	struct fixture *f = ctx;

	f->last = (struct access){bar, offset, size, 0};
	return UINT64_C(0x1122334455667788);
}

static void model_write(void *ctx, uint32_t bar, uint32_t offset, uint32_t size, uint64_t value)
{
	struct fixture *f = ctx;

	f->last = (struct access){bar, offset, size, value};
	f->writes++;
}

static void model_bus_master(void *ctx, bool on)
{
	struct fixture *f = ctx;

	f->master = on;
	f->master_changes++;
}

static void model_reset(void *ctx)
{
	((struct fixture *)ctx)->resets++;
}

static void model_added(void *ctx, uint64_t addr, uint64_t size)
{
	struct fixture *f = ctx;

	/* It is there already. */
	assert_non_null(vnic_guest_memory_range(f->memory, addr, size, false));
	f->added++;
}

static void model_removed(void *ctx, uint64_t addr, uint64_t size)
{
	struct fixture *f = ctx;

	f->removed++;
	f->removed_addr = addr;
	f->removed_size = size;
}

static void model_disconnected(void *ctx)
{
	struct fixture *f = ctx;
	uint32_t count;

	vnic_guest_memory_regions(f->memory, &count);
	assert_int_equal(count, 0);
	f->disconnects++;
}

static bool model_settled(void *ctx)
{
	return !((struct fixture *)ctx)->unsettled;
}

static void model_refused(void *ctx, uint64_t addr, uint64_t size, int error)
{
	(void)addr, (void)size;
	((struct fixture *)ctx)->refusal = error;
}

static void model_lost(void *ctx, uint64_t addr, uint64_t size)
{
	struct fixture *f = ctx;

	/* The model has been told before. */
	assert_int_equal(f->removed_addr, addr);
	assert_int_equal(f->removed_size, size);
	f->lost++;
	f->lost_addr = addr;
	f->lost_size = size;
}

/* --- The client */

static void connect_client(struct fixture *f)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends),
			 0);
	assert_int_equal(vnic_vfio_server_connect(f->server, ends[0]), 0);
	f->client = ends[1];
}

static int setup_function(void **state, const struct vnic_vfio_function *served)
{
	static struct fixture f;
	struct vnic_vfio_attr attr = {.function = *served,
				      .ops = {model_read, model_write, model_reset, model_added,
					      model_removed, model_disconnected, model_settled,
					      model_refused, model_lost, model_bus_master},
				      .ctx = &f};

	f = (struct fixture){.file = memfd_create("guest", MFD_CLOEXEC)};
	assert_int_equal(ftruncate(f.file, PAGES * PAGE), 0);
	assert_int_equal(vnic_guest_memory_create(&f.memory), 0);
	attr.memory = f.memory;
	assert_int_equal(vnic_vfio_server_create(&attr, &f.server), 0);
	connect_client(&f);
	*state = &f;
	return 0;
}

static int setup_unversioned(void **state)
{
	return setup_function(state, &function);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	close(f->client);
	vnic_vfio_server_destroy(f->server);
	vnic_guest_memory_destroy(f->memory);
	return close(f->file);
}

static void send_bytes(struct fixture *f, const void *bytes, size_t n, const int *fds,
		       uint32_t n_fds)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(64 * sizeof(int))];
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
		memcpy(CMSG_DATA(cmsg), fds, n_fds * sizeof(int));
	}
	assert_int_equal(sendmsg(f->client, &msg, MSG_NOSIGNAL), n);
}

static size_t build(struct fixture *f, uint8_t *to, uint16_t command, uint32_t flags,
		    const void *body, uint32_t size)
{
	const struct header header = {++f->id, command, (uint32_t)sizeof(header) + size, flags, 0};

	memcpy(to, &header, sizeof(header));
	if (size)
		memcpy(to + sizeof(header), body, size);
	return header.size;
}

/* Reads the header and the descriptor of a reply; false: there is none. */
static bool read_header(struct fixture *f)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = {&f->reply, sizeof(f->reply)};
	struct msghdr msg = {.msg_iov = &part,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control.bytes)};

	f->reply_fd = -1;
	if (recvmsg(f->client, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != sizeof(f->reply))
		return false;
	if (CMSG_FIRSTHDR(&msg))
		memcpy(&f->reply_fd, CMSG_DATA(&control.header), sizeof(f->reply_fd));
	return true;
}

/* Reads a reply into f->reply and f->body; false: there is none. */
static bool read_reply(struct fixture *f)
{
	if (!read_header(f))
		return false;
	assert_int_equal(f->reply.flags & 0xf, IS_REPLY);
	assert_int_equal(!!(f->reply.flags & ERROR), !!f->reply.error);
	if (f->reply.size > sizeof(f->reply))
		assert_int_equal(
			recv(f->client, f->body, f->reply.size - sizeof(f->reply), MSG_DONTWAIT),
			f->reply.size - sizeof(f->reply));
	return true;
}

/* Sends a command and returns the errno value of its reply. */
static int ask_with(struct fixture *f, uint16_t command, const void *body, uint32_t size,
		    const int *fds, uint32_t n_fds)
{
	uint8_t message[8192];
	size_t n = build(f, message, command, IS_COMMAND, body, size);

	send_bytes(f, message, n, fds, n_fds);
	assert_int_equal(vnic_vfio_server_event(f->server), 0);
	assert_true(read_reply(f));
	assert_int_equal(f->reply.id, f->id);
	assert_int_equal(f->reply.command, command);
	if (f->reply.error)
		assert_int_equal(f->reply.size, sizeof(f->reply));
	return (int)f->reply.error;
}

static int ask(struct fixture *f, uint16_t command, const void *body, uint32_t size)
{
	return ask_with(f, command, body, size, NULL, 0);
}

static uint32_t body_size(const struct fixture *f)
{
	return f->reply.size - (uint32_t)sizeof(f->reply);
}

static const char offer[] =
	"\0\0\0\0{\"capabilities\":{\"max_msg_fds\":8,\"write_multiple\" : true}}";

static int setup(void **state)
{
	int rc = setup_unversioned(state);

	return rc ?: ask(*state, VERSION, offer, sizeof(offer));
}

/* The server has closed the connection, after the model's reset. */
static void expect_closed(struct fixture *f, int rc)
{
	char byte;
	ssize_t n;

	assert_int_equal(vnic_vfio_server_event(f->server), rc);
	assert_int_equal(vnic_vfio_server_fd(f->server), -1);
	assert_int_equal(f->disconnects, 1);
	assert_int_equal(f->resets, 1);
	/* ECONNRESET: the server did not read all. */
	n = recv(f->client, &byte, 1, MSG_DONTWAIT);
	assert_true(n == 0 || (n < 0 && errno == ECONNRESET));
}

static uint32_t count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	uint32_t n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* --- VERSION */

static void version_comes_first(void **state)
{
	struct fixture *f = *state;
	const uint32_t info[4] = {16};

	assert_int_equal(ask(f, GET_INFO, info, sizeof(info)), EINVAL);
	assert_int_equal(ask(f, RESET, NULL, 0), EINVAL);
	assert_int_equal(f->resets, 0);
	assert_int_equal(ask(f, VERSION, offer, sizeof(offer)), 0);
	assert_int_equal(f->body[0] | f->body[1] | f->body[2] | f->body[3], 0);
	assert_string_equal((char *)f->body + 4,
			    "{\"capabilities\":{\"max_msg_fds\":16,\"max_data_xfer_size\":4096,"
			    "\"max_dma_maps\":256,\"pgsizes\":4096,\"write_multiple\":true}}");
	assert_int_equal(body_size(f), 4 + strlen((char *)f->body + 4) + 1);
	assert_int_equal(ask(f, VERSION, offer, sizeof(offer)), EINVAL);
	assert_int_equal(ask(f, GET_INFO, info, sizeof(info)), 0);
}

static void version_is_checked(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(ask(f, VERSION, "\1\0\0\0", 4), ENOTSUP);
	assert_int_equal(ask(f, VERSION, "\0\0", 2), EINVAL);
	assert_int_equal(ask(f, VERSION, "\0\0\0\0{}", 6), EINVAL); /* no NUL */
	assert_int_equal(ask(f, VERSION, "\0\0\5\0{\"write_multiple\":false}", 29), 0);
	assert_null(strstr((char *)f->body + 4, "write_multiple"));
	assert_int_equal(f->body[2], 0);
}

static void version_without_capabilities(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(ask(f, VERSION, "\0\0\0\0", 4), 0);
	assert_null(strstr((char *)f->body + 4, "write_multiple"));
}

/* --- Information */

static void device_and_regions(void **state)
{
	static const uint64_t sizes[] = {4096, 4096, 8192, 0, 0, 0, 0, 256, 0};
	struct fixture *f = *state;
	uint32_t info[8] = {16}, *got = (uint32_t *)f->body;
	uint64_t size;

	assert_int_equal(ask(f, GET_INFO, info, 16), 0);
	assert_int_equal(body_size(f), 16);
	assert_int_equal(got[1], VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET);
	assert_int_equal(got[2], 9);
	assert_int_equal(got[3], 5);
	for (uint32_t i = 0; i < 9; i++) {
		info[0] = 32;
		info[2] = i;
		assert_int_equal(ask(f, GET_REGION_INFO, info, 32), 0);
		assert_int_equal(got[0], 32);
		assert_int_equal(got[1], sizes[i] ? 3 : 0);
		assert_int_equal(got[2], i);
		memcpy(&size, got + 4, sizeof(size));
		assert_int_equal(size, sizes[i]);
	}
	info[2] = 9;
	assert_int_equal(ask(f, GET_REGION_INFO, info, 32), EINVAL);
	info[2] = 0;
	info[0] = 31;
	assert_int_equal(ask(f, GET_REGION_INFO, info, 32), EINVAL);
	info[0] = 15;
	assert_int_equal(ask(f, GET_INFO, info, 16), EINVAL);
	assert_int_equal(ask(f, GET_REGION_IO_FDS, info, 16), ENOTSUP);
}

/* BAR1 is the beginning of a file. */
static int setup_mapped(void **state)
{
	struct vnic_vfio_function mapped = function;
	int rc;

	mapped.mapped_bar = 1;
	mapped.mapped_fd = memfd_create("bar", MFD_CLOEXEC);
	assert_int_equal(ftruncate(mapped.mapped_fd, 4096), 0);
	rc = setup_function(state, &mapped);
	((struct fixture *)*state)->bar = mapped.mapped_fd;
	return rc ?: ask(*state, VERSION, offer, sizeof(offer));
}

static int teardown_mapped(void **state)
{
	close(((struct fixture *)*state)->bar);
	return teardown(state);
}

/* The reply about the BAR has the file: stores there cause no message. */
static void mapped_region(void **state)
{
	struct fixture *f = *state;
	/* Offset 8 of BAR1, 4 bytes, value 7. */
	static const uint32_t message[5] = {8, 0, 1, 4, 7};
	uint32_t info[8] = {32}, flags;
	char byte = 'x';

	for (info[2] = 0; info[2] < 9; info[2]++) {
		assert_int_equal(ask(f, GET_REGION_INFO, info, 32), 0);
		memcpy(&flags, f->body + 4, sizeof(flags));
		assert_int_equal(flags & VFIO_REGION_INFO_FLAG_MMAP ? 1 : 0, info[2] == 1);
		assert_int_equal(f->reply_fd >= 0, info[2] == 1);
		if (f->reply_fd < 0)
			continue;
		assert_int_equal(pwrite(f->reply_fd, &byte, 1, 8), 1);
		close(f->reply_fd);
	}
	byte = 0;
	assert_int_equal(pread(f->bar, &byte, 1, 8), 1);
	assert_int_equal(byte, 'x');
	/* An error has no descriptor. */
	info[0] = 31;
	info[2] = 1;
	assert_int_equal(ask(f, GET_REGION_INFO, info, 32), EINVAL);
	assert_int_equal(f->reply_fd, -1);
	/* The hypervisor may send messages for it all the same. */
	assert_int_equal(ask(f, REGION_WRITE, message, sizeof(message)), 0);
	assert_int_equal(f->last.value, 7);
}

static void interrupt_indices(void **state)
{
	struct fixture *f = *state;
	uint32_t info[4] = {16}, *got = (uint32_t *)f->body;

	for (uint32_t i = 0; i < 5; i++) {
		info[2] = i;
		assert_int_equal(ask(f, GET_IRQ_INFO, info, 16), 0);
		assert_int_equal(got[3], i == VFIO_PCI_MSIX_IRQ_INDEX ? VECTORS : 0);
		assert_int_equal(got[1], i == VFIO_PCI_MSIX_IRQ_INDEX ? VFIO_IRQ_INFO_EVENTFD : 0);
	}
	info[2] = 5;
	assert_int_equal(ask(f, GET_IRQ_INFO, info, 16), EINVAL);
}

/* --- Regions */

struct access_message {
	uint64_t offset;
	uint32_t region, count;
	uint8_t data[8];
};

static int read_region(struct fixture *f, uint32_t region, uint64_t offset, uint32_t count)
{
	const struct access_message m = {offset, region, count, {0}};
	int rc = ask(f, REGION_READ, &m, 16);

	if (!rc) {
		assert_int_equal(body_size(f), 16 + count);
		assert_memory_equal(f->body, &m, 16);
	}
	return rc;
}

static int write_region(struct fixture *f, uint32_t region, uint64_t offset, uint32_t count,
			uint64_t value)
{
	struct access_message m = {offset, region, count, {0}};
	int rc;

	memcpy(m.data, &value, sizeof(value));
	rc = ask(f, REGION_WRITE, &m, 16 + (count < 8 ? count : 8));
	if (!rc)
		assert_int_equal(body_size(f), 16);
	return rc;
}

static uint32_t read_config(struct fixture *f, uint32_t offset, uint32_t count)
{
	uint32_t value = 0;

	assert_int_equal(read_region(f, VFIO_PCI_CONFIG_REGION_INDEX, offset, count), 0);
	memcpy(&value, f->body + 16, count);
	return value;
}

static void write_config(struct fixture *f, uint32_t offset, uint32_t count, uint32_t value)
{
	assert_int_equal(write_region(f, VFIO_PCI_CONFIG_REGION_INDEX, offset, count, value), 0);
}

static void config_space_after_power_on(void **state)
{
	struct fixture *f = *state;
	uint8_t expected[256] = {0};

	memcpy(expected, "\xad\x15\xb0\x07\0\0\x10\0\1\0\0\2\0\0\x80", 15);
	memcpy(expected + PCI_SUBSYSTEM_VENDOR_ID, "\xae\x15\xb1\x07", 4);
	expected[PCI_CAPABILITY_LIST] = 0x40;
	memcpy(expected + 0x40, "\x11\0\x18\0\2\0\0\0\2\x10\0\0", 12);
	assert_int_equal(read_region(f, VFIO_PCI_CONFIG_REGION_INDEX, 0, 256), 0);
	assert_memory_equal(f->body + 16, expected, 256);
}

/* All ones, bit by bit: the answer of each dword, and what is left after a reset. */
static void config_space_writes(void **state)
{
	struct fixture *f = *state;

	for (uint32_t at = 0; at < 256; at += 4) {
		const uint32_t before = read_config(f, at, 4);
		uint32_t wanted = before;

		write_config(f, at, 4, 0xffffffff);
		switch (at) {
		case PCI_COMMAND: wanted = 0x00100506; break;
		case PCI_CACHE_LINE_SIZE: wanted |= 0xffff; break;
		case PCI_BASE_ADDRESS_0:
		case PCI_BASE_ADDRESS_1: wanted = 0xfffff000; break;
		case PCI_BASE_ADDRESS_2: wanted = 0xffffe000; break;
		case PCI_INTERRUPT_LINE: wanted = 0xff; break;
		case 0x40: wanted |= 0xc0000000; break;
		default: break;
		}
		assert_int_equal(read_config(f, at, 4), wanted);
		/* And one byte of it. */
		write_config(f, at + 1, 1, 0);
		assert_int_equal(read_config(f, at, 1), wanted & 0xff);
	}
	/* The writes to BARs without the right to access memory were resets, too. */
	f->resets = 0;
	assert_int_equal(ask(f, RESET, NULL, 0), 0);
	assert_int_equal(f->resets, 1);
	config_space_after_power_on(state);
}

static void bus_mastering(void **state)
{
	struct fixture *f = *state;

	write_config(f, PCI_COMMAND, 2, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	write_config(f, PCI_COMMAND, 2, PCI_COMMAND_MASTER);
	assert_int_equal(f->master_changes, 1);
	assert_true(f->master);
	write_config(f, PCI_BASE_ADDRESS_1, 4, UINT32_MAX);
	assert_int_equal(f->resets, 0);
	write_config(f, PCI_COMMAND + 1, 1, 0xff);
	write_config(f, PCI_COMMAND, 1, PCI_COMMAND_MEMORY);
	assert_int_equal(f->master_changes, 2);
	assert_false(f->master);
	/* Linux restores addresses after a suspension; the next kernel asks for the sizes. */
	write_config(f, PCI_BASE_ADDRESS_1, 4, 0xfe000000);
	write_config(f, PCI_ROM_ADDRESS, 4, UINT32_MAX);
	assert_int_equal(f->resets, 0);
	write_config(f, PCI_BASE_ADDRESS_1, 4, UINT32_MAX);
	assert_int_equal(f->resets, 1);
}

static void bounds_of_regions(void **state)
{
	struct fixture *f = *state;
	const uint32_t config = VFIO_PCI_CONFIG_REGION_INDEX;

	assert_int_equal(read_region(f, config, 255, 1), 0);
	assert_int_equal(read_region(f, config, 255, 2), EINVAL);
	assert_int_equal(read_region(f, config, 256, 1), EINVAL);
	assert_int_equal(read_region(f, config, UINT64_MAX, 1), EINVAL);
	assert_int_equal(read_region(f, config, UINT64_MAX, 2), EINVAL);
	assert_int_equal(read_region(f, config, 0, 0), EINVAL);
	assert_int_equal(read_region(f, config, 0, UINT32_MAX), EINVAL);
	assert_int_equal(read_region(f, 0, 4092, 4), 0);
	assert_int_equal(read_region(f, 0, 4096, 4), EINVAL);
	assert_int_equal(read_region(f, 0, 4094, 4), EINVAL);
	assert_int_equal(read_region(f, 0, 2, 4), EINVAL); /* not aligned */
	assert_int_equal(read_region(f, 0, 0, 3), EINVAL);
	assert_int_equal(read_region(f, 0, 0, 16), EINVAL);
	for (uint32_t i = 3; i < 7; i++)
		assert_int_equal(read_region(f, i, 0, 4), EINVAL);
	assert_int_equal(read_region(f, 8, 0, 4), EINVAL);
	assert_int_equal(read_region(f, 9, 0, 4), EINVAL);
	assert_int_equal(read_region(f, UINT32_MAX, 0, 4), EINVAL);
	assert_int_equal(write_region(f, 0, 4096, 4, 0), EINVAL);
	assert_int_equal(write_region(f, config, 256, 4, 0), EINVAL);
	assert_int_equal(f->writes, 0);
}

static void registers_reach_the_model(void **state)
{
	struct fixture *f = *state;
	uint64_t value = 0;

	for (uint32_t size = 1; size <= 8; size *= 2) {
		assert_int_equal(read_region(f, 1, 8 * size, size), 0);
		memcpy(&value, f->body + 16, size);
		assert_int_equal(value,
				 UINT64_C(0x1122334455667788) & (UINT64_MAX >> (64 - 8 * size)));
		assert_int_equal(f->last.bar, 1);
		assert_int_equal(f->last.offset, 8 * size);
		assert_int_equal(f->last.size, size);
		assert_int_equal(write_region(f, 0, 8 * size, size, UINT64_MAX), 0);
		assert_int_equal(f->last.value, UINT64_MAX >> (64 - 8 * size));
		assert_int_equal(f->last.bar, 0);
		assert_int_equal(f->last.size, size);
	}
	/* The MSI-X table is the hypervisor's. */
	f->writes = 0;
	assert_int_equal(write_region(f, 2, 0, 4, 7), 0);
	assert_int_equal(write_region(f, 2, VECTORS * 16 - 4, 4, 7), 0);
	assert_int_equal(write_region(f, 2, 4096, 8, 7), 0);
	assert_int_equal(f->writes, 0);
	assert_int_equal(write_region(f, 2, VECTORS * 16, 4, 7), 0);
	assert_int_equal(f->writes, 1);
	assert_int_equal(read_region(f, 2, 0, 4), 0);
	assert_int_equal(f->body[16] | f->body[17] | f->body[18] | f->body[19], 0);
}

static void sizes_of_writes_are_checked(void **state)
{
	struct fixture *f = *state;
	struct access_message m = {0, 0, 4, {0}};

	assert_int_equal(ask(f, REGION_WRITE, &m, 16 + 3), EINVAL);
	assert_int_equal(ask(f, REGION_WRITE, &m, 16 + 5), EINVAL);
	assert_int_equal(ask(f, REGION_WRITE, &m, 16), EINVAL);
	m.count = 0;
	assert_int_equal(ask(f, REGION_WRITE, &m, 16), EINVAL);
	assert_int_equal(f->writes, 0);
}

struct multi {
	uint64_t count;
	struct access_message at[201];
};

static void many_writes_in_one_message(void **state)
{
	struct fixture *f = *state;
	struct multi m = {.count = 3};

	for (uint32_t i = 0; i < 201; i++)
		m.at[i] = (struct access_message){4 * i, 0, 4, {(uint8_t)i}};
	assert_int_equal(ask(f, WRITE_MULTI, &m, 8 + 3 * 24), 0);
	assert_int_equal(body_size(f), 8);
	assert_int_equal(f->writes, 3);
	assert_int_equal(f->last.offset, 8);
	m.count = 200;
	assert_int_equal(ask(f, WRITE_MULTI, &m, 8 + 200 * 24), 0);
	assert_int_equal(f->writes, 203);
	m.count = 201;
	assert_int_equal(ask(f, WRITE_MULTI, &m, 8 + 201 * 24), EINVAL);
	m.count = 0;
	assert_int_equal(ask(f, WRITE_MULTI, &m, 8), EINVAL);
	m.count = UINT64_MAX / 24 + 1;
	assert_int_equal(ask(f, WRITE_MULTI, &m, 8 + 24), EINVAL);
	m.count = 2;
	assert_int_equal(ask(f, WRITE_MULTI, &m, 8 + 2 * 24 - 1), EINVAL);
	assert_int_equal(f->writes, 203);
	/* The second of three is wrong: the third is not executed. */
	m.count = 3;
	m.at[1].count = 9;
	assert_int_equal(ask(f, WRITE_MULTI, &m, 8 + 3 * 24), EINVAL);
	assert_int_equal(f->writes, 204);
}

/* --- Memory */

struct map {
	uint32_t argsz, flags;
	uint64_t offset, addr, size;
};

static int map(struct fixture *f, uint64_t addr, uint64_t pages, uint32_t flags, bool with_fd)
{
	const struct map m = {sizeof(m), flags, 2 * PAGE, addr, pages * PAGE};

	return ask_with(f, DMA_MAP, &m, sizeof(m), &f->file, with_fd);
}

static int unmap(struct fixture *f, uint64_t addr, uint64_t pages, uint32_t flags)
{
	const struct map m = {24, flags, addr, pages * PAGE, 0};

	return ask(f, DMA_UNMAP, &m, 24);
}

static void memory_comes_and_goes(void **state)
{
	struct fixture *f = *state;
	const uint32_t rw = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;
	const uint32_t fds = count_fds();

	assert_int_equal(pwrite(f->file, "guest", 5, 2 * PAGE), 5);
	assert_int_equal(map(f, 0x100000, 4, rw, true), 0);
	assert_int_equal(f->added, 1);
	assert_memory_equal(vnic_guest_memory_range(f->memory, 0x100000, 5, true), "guest", 5);
	assert_int_equal(map(f, 0x103000, 4, rw, true), EEXIST);
	assert_int_equal(map(f, 0x200000, 4, VFIO_DMA_MAP_FLAG_READ, true), 0);
	assert_null(vnic_guest_memory_range(f->memory, 0x200000, 5, true));
	/* Without a descriptor: nothing is mapped, and its unmapping is no error. */
	assert_int_equal(map(f, 0x300000, 4, rw, false), 0);
	assert_int_equal(f->added, 2);
	assert_int_equal(unmap(f, 0x300000, 4, 0), 0);
	assert_int_equal(unmap(f, 0x101000, 1, 0), 0);
	assert_int_equal(body_size(f), 24);
	assert_int_equal(f->removed_addr, 0x101000);
	assert_int_equal(f->removed_size, PAGE);
	assert_null(vnic_guest_memory_range(f->memory, 0x101000, 1, false));
	assert_non_null(vnic_guest_memory_range(f->memory, 0x102000, 1, false));
	f->removed = 0;
	assert_int_equal(unmap(f, 0, 0, VFIO_DMA_UNMAP_FLAG_ALL), 0);
	assert_int_equal(f->removed, 1);
	assert_int_equal(f->removed_addr, 0);
	assert_int_equal(f->removed_size, UINT64_MAX);
	assert_null(vnic_guest_memory_range(f->memory, 0x200000, 1, false));
	assert_int_equal(count_fds(), fds);
}

/* A peer copies to the memory: it stays mapped, and the client gets no answer, until that ends. */
static void memory_in_use_is_unmapped_later(void **state)
{
	struct fixture *f = *state;
	const struct map m = {24, 0, 0x100000, 2 * PAGE, 0};
	uint8_t message[64];
	size_t n;

	assert_int_equal(map(f, 0x100000, 4, 3, true), 0);
	f->unsettled = true;
	n = build(f, message, DMA_UNMAP, 0, &m, 24);
	send_bytes(f, message, n, NULL, 0);
	send_bytes(f, message, n, NULL, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(vnic_vfio_server_event(f->server), 0);
		assert_true(vnic_vfio_server_is_held(f->server));
		assert_false(read_reply(f));
		assert_int_equal(f->removed, 1);
		assert_non_null(vnic_guest_memory_range(f->memory, 0x100000, 1, false));
	}
	f->unsettled = false;
	assert_int_equal(vnic_vfio_server_event(f->server), 0);
	assert_false(vnic_vfio_server_is_held(f->server));
	/* The first message's memory once more, since the driver may have registered it meanwhile.
	 */
	assert_int_equal(f->removed, 3);
	assert_true(read_reply(f));
	assert_true(read_reply(f));
	assert_false(read_reply(f));
	assert_null(vnic_guest_memory_range(f->memory, 0x100000, 1, false));
	assert_non_null(vnic_guest_memory_range(f->memory, 0x102000, 1, false));
}

static void disconnection_waits_too(void **state)
{
	struct fixture *f = *state;
	uint8_t message[256];
	size_t n;

	assert_int_equal(map(f, 0x100000, 4, 3, true), 0);
	f->unsettled = true;
	vnic_vfio_server_disconnect(f->server);
	assert_int_equal(f->resets, 1);
	assert_int_equal(f->disconnects, 0);
	assert_non_null(vnic_guest_memory_range(f->memory, 0x100000, 1, false));
	/* The next client waits. */
	close(f->client);
	connect_client(f);
	n = build(f, message, VERSION, 0, offer, sizeof(offer));
	send_bytes(f, message, n, NULL, 0);
	assert_int_equal(vnic_vfio_server_event(f->server), 0);
	assert_false(read_reply(f));
	f->unsettled = false;
	assert_int_equal(vnic_vfio_server_event(f->server), 0);
	assert_int_equal(f->disconnects, 1);
	assert_null(vnic_guest_memory_range(f->memory, 0x100000, 1, false));
	assert_true(read_reply(f));
}

static void lost_memory_is_withdrawn(void **state)
{
	const uint32_t rw = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;
	struct fixture *f = *state;
	volatile char *bytes;

	assert_int_equal(vnic_guest_memory_catch_faults(NULL, NULL), 0);
	assert_int_equal(map(f, 0x100000, 8, rw, true), 0);
	bytes = vnic_guest_memory_range(f->memory, 0x100000, 8 * PAGE, true);
	/* The region begins with the third page. */
	assert_int_equal(ftruncate(f->file, 4 * PAGE), 0);
	bytes[0] = 1;
	vnic_vfio_server_check_memory(f->server);
	assert_int_equal(f->lost, 0);
	bytes[5 * PAGE] = 1;
	bytes[7 * PAGE] = 1;
	vnic_vfio_server_check_memory(f->server);
	assert_int_equal(f->lost, 2);
	assert_int_equal(f->lost_addr, 0x100000 + 7 * PAGE);
	assert_int_equal(f->lost_size, PAGE);
	assert_null(vnic_guest_memory_range(f->memory, 0x100000 + 5 * PAGE, 1, false));
	assert_non_null(vnic_guest_memory_range(f->memory, 0x100000 + 6 * PAGE, 1, false));
	/* The client's view is another. */
	assert_int_equal(unmap(f, 0x100000, 8, 0), 0);
	assert_int_equal(f->removed_size, 8 * PAGE);
}

/* An operator learns why a hypervisor does not start. */
static void a_refusal_of_memory_is_told(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(map(f, 0x100000, PAGES + 1, VFIO_DMA_MAP_FLAG_READ, true), EFBIG);
	assert_int_equal(f->refusal, -EFBIG);
	assert_int_equal(f->added, 0);
}

static void malformed_maps(void **state)
{
	struct fixture *f = *state;
	const uint32_t rw = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;
	struct map m = {sizeof(m), rw, 0, 0x100000, PAGE};

	assert_int_equal(map(f, 0x100000, 4, 0, true), EINVAL);
	assert_int_equal(map(f, 0x100000, 4, rw | 8, true), EINVAL);
	assert_int_equal(map(f, 0x100000, 0, rw, true), EINVAL);
	assert_int_equal(map(f, 0x100001, 1, rw, true), EINVAL);
	assert_int_equal(map(f, UINT64_MAX - PAGE + 1, 2, rw, true), EINVAL);
	assert_int_equal(map(f, 0x100000, PAGES, rw, true), EFBIG);
	m.argsz--;
	assert_int_equal(ask_with(f, DMA_MAP, &m, sizeof(m), &f->file, 1), EINVAL);
	m.argsz++;
	m.offset = PAGE / 2;
	assert_int_equal(ask_with(f, DMA_MAP, &m, sizeof(m), &f->file, 1), EINVAL);
	m.offset = UINT64_MAX - PAGE + 1;
	assert_int_equal(ask_with(f, DMA_MAP, &m, sizeof(m), &f->file, 1), EINVAL);
	assert_int_equal(unmap(f, 0x100000, 0, 0), EINVAL);
	assert_int_equal(unmap(f, UINT64_MAX - PAGE + 1, 2, 0), EINVAL);
	assert_int_equal(unmap(f, 0x100000, 1, VFIO_DMA_UNMAP_FLAG_GET_DIRTY_BITMAP), EINVAL);
	assert_int_equal(f->added + f->removed, 0);
}

/* --- Interrupts */

struct irqs {
	uint32_t argsz, flags, index, start, count;
	uint8_t data[64];
};

static int set_irqs(struct fixture *f, uint32_t flags, uint32_t start, uint32_t count,
		    const int *fds, uint32_t n_fds)
{
	struct irqs m = {20, flags, VFIO_PCI_MSIX_IRQ_INDEX, start, count, {0}};
	const uint32_t data = flags & VFIO_IRQ_SET_DATA_BOOL && count < 64 ? count : 0;

	m.argsz += data;
	memset(m.data, 1, sizeof(m.data));
	return ask_with(f, SET_IRQS, &m, 20 + data, fds, n_fds);
}

static uint64_t take(int fd)
{
	eventfd_t value = 0;

	eventfd_read(fd, &value);
	return value;
}

static uint32_t pending(struct fixture *f)
{
	assert_int_equal(read_region(f, 2, 4096, 4), 0);
	return f->body[16] | f->body[17] << 8 | (uint32_t)f->body[18] << 16;
}

#define TRIGGER   VFIO_IRQ_SET_ACTION_TRIGGER
#define MASK      VFIO_IRQ_SET_ACTION_MASK
#define UNMASK    VFIO_IRQ_SET_ACTION_UNMASK
#define WITH_FD   VFIO_IRQ_SET_DATA_EVENTFD
#define WITH_NONE VFIO_IRQ_SET_DATA_NONE
#define WITH_BOOL VFIO_IRQ_SET_DATA_BOOL

static void interrupts_reach_their_eventfds(void **state)
{
	struct fixture *f = *state;
	const uint32_t before = count_fds();
	int fds[3];

	/* Before there is an eventfd: pending. */
	vnic_vfio_server_interrupt(f->server, 4);
	assert_int_equal(pending(f), 1 << 4);
	for (int i = 0; i < 3; i++)
		fds[i] = eventfd(0, EFD_CLOEXEC); /* blocking: the server must not wait */
	assert_int_equal(set_irqs(f, TRIGGER | WITH_FD, 3, 3, fds, 3), 0);
	assert_int_equal(pending(f), 0);
	assert_int_equal(take(fds[1]), 1);
	vnic_vfio_server_interrupt(f->server, 3);
	vnic_vfio_server_interrupt(f->server, 5);
	vnic_vfio_server_interrupt(f->server, VECTORS);
	vnic_vfio_server_interrupt(f->server, UINT32_MAX);
	assert_int_equal(take(fds[0]), 1);
	assert_int_equal(take(fds[1]), 0);
	assert_int_equal(take(fds[2]), 1);
	/* A full counter does not block. */
	eventfd_write(fds[0], UINT64_MAX - 1);
	vnic_vfio_server_interrupt(f->server, 3);
	take(fds[0]);
	/* Masked, then unmasked. */
	assert_int_equal(set_irqs(f, MASK | WITH_NONE, 3, 1, NULL, 0), 0);
	vnic_vfio_server_interrupt(f->server, 3);
	assert_int_equal(take(fds[0]), 0);
	assert_int_equal(pending(f), 1 << 3);
	assert_int_equal(set_irqs(f, UNMASK | WITH_BOOL, 3, 1, NULL, 0), 0);
	assert_int_equal(take(fds[0]), 1);
	/* The client may raise an interrupt itself. */
	assert_int_equal(set_irqs(f, TRIGGER | WITH_NONE, 3, 2, NULL, 0), 0);
	assert_int_equal(take(fds[0]) + take(fds[1]), 2);
	assert_int_equal(set_irqs(f, TRIGGER | WITH_BOOL, 5, 1, NULL, 0), 0);
	assert_int_equal(take(fds[2]), 1);
	/* An eventfd is taken away; then all. */
	assert_int_equal(set_irqs(f, TRIGGER | WITH_FD, 4, 1, NULL, 0), 0);
	vnic_vfio_server_interrupt(f->server, 4);
	assert_int_equal(take(fds[1]), 0);
	assert_int_equal(set_irqs(f, TRIGGER | WITH_NONE, 0, 0, NULL, 0), 0);
	vnic_vfio_server_interrupt(f->server, 5);
	assert_int_equal(take(fds[2]), 0);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	assert_int_equal(count_fds(), before);
}

static void malformed_irqs(void **state)
{
	struct fixture *f = *state;
	struct irqs m = {20, TRIGGER | WITH_NONE, VFIO_PCI_MSIX_IRQ_INDEX, 0, 0, {0}};
	const uint32_t before = count_fds();
	int fds[3];

	for (int i = 0; i < 3; i++)
		fds[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	assert_int_equal(set_irqs(f, TRIGGER | WITH_FD, 0, 2, fds, 3), EINVAL);
	assert_int_equal(set_irqs(f, TRIGGER | WITH_FD, 0, 3, fds, 2), EINVAL);
	assert_int_equal(set_irqs(f, TRIGGER | WITH_FD, VECTORS - 2, 3, fds, 3), EINVAL);
	assert_int_equal(set_irqs(f, TRIGGER | WITH_FD, UINT32_MAX, 3, fds, 3), EINVAL);
	assert_int_equal(set_irqs(f, TRIGGER | WITH_FD, 1, UINT32_MAX, NULL, 0), EINVAL);
	assert_int_equal(set_irqs(f, TRIGGER | WITH_NONE, 0, 1, fds, 1), EINVAL);
	assert_int_equal(set_irqs(f, MASK | WITH_FD, 0, 3, fds, 3), EINVAL);
	assert_int_equal(set_irqs(f, TRIGGER | WITH_FD | WITH_NONE, 0, 3, fds, 3), EINVAL);
	assert_int_equal(set_irqs(f, TRIGGER | MASK | WITH_NONE, 0, 1, NULL, 0), EINVAL);
	assert_int_equal(set_irqs(f, TRIGGER, 0, 1, NULL, 0), EINVAL);
	assert_int_equal(set_irqs(f, WITH_NONE, 0, 1, NULL, 0), EINVAL);
	assert_int_equal(set_irqs(f, TRIGGER | WITH_NONE | 64, 0, 1, NULL, 0), EINVAL);
	m.index = 5;
	assert_int_equal(ask(f, SET_IRQS, &m, 20), EINVAL);
	/* An index without vectors can only be disabled. */
	m.index = VFIO_PCI_INTX_IRQ_INDEX;
	assert_int_equal(ask(f, SET_IRQS, &m, 20), 0);
	m.count = 1;
	assert_int_equal(ask(f, SET_IRQS, &m, 20), EINVAL);
	m = (struct irqs){24, TRIGGER | WITH_BOOL, VFIO_PCI_MSIX_IRQ_INDEX, 0, 4, {0}};
	assert_int_equal(ask(f, SET_IRQS, &m, 20 + 3), EINVAL);
	assert_int_equal(ask(f, SET_IRQS, &m, 20 + 5), EINVAL);
	assert_int_equal(ask(f, SET_IRQS, &m, 20 + 4), 0);
	m.argsz = 19;
	assert_int_equal(ask(f, SET_IRQS, &m, 20 + 4), EINVAL);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	assert_int_equal(count_fds(), before);
}

/* --- The stream */

static void sizes_of_commands(void **state)
{
	static const struct {
		uint16_t command;
		uint32_t size;
	} rows[] = {{DMA_MAP, 32},      {DMA_UNMAP, 24},   {GET_INFO, 16}, {GET_REGION_INFO, 32},
		    {GET_IRQ_INFO, 16}, {REGION_READ, 16}, {RESET, 0}};
	struct fixture *f = *state;
	uint8_t body[64] = {0};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		/* A good length of the structure, for each of these messages. */
		body[0] = 32;
		if (rows[i].size)
			assert_int_equal(ask(f, rows[i].command, body, rows[i].size - 1), EINVAL);
		assert_int_equal(ask(f, rows[i].command, body, rows[i].size + 1), EINVAL);
		assert_int_equal(ask_with(f, rows[i].command, body, rows[i].size, &f->file,
					  1 + (rows[i].command == DMA_MAP)),
				 EINVAL);
	}
	assert_int_equal(f->resets, 0);
	assert_int_equal(ask(f, SET_IRQS, body, 19), EINVAL);
	assert_int_equal(ask(f, REGION_WRITE, body, 15), EINVAL);
	assert_int_equal(ask(f, WRITE_MULTI, body, 7), EINVAL);
	for (uint16_t command = 0; command < 100; command++)
		if (!command || command == DMA_READ || command == 12 || command == 14 ||
		    command > 18)
			assert_int_equal(ask(f, command, body, 16), ENOTSUP);
}

static void unneeded_descriptors_are_closed(void **state)
{
	struct fixture *f = *state;
	const uint32_t info[4] = {16}, before = count_fds();
	const int fds[2] = {f->file, f->file};

	assert_int_equal(ask_with(f, GET_INFO, info, 16, fds, 2), EINVAL);
	assert_int_equal(ask_with(f, 99, info, 16, fds, 2), ENOTSUP);
	assert_int_equal(count_fds(), before);
}

static void too_many_descriptors_end_the_connection(void **state)
{
	struct fixture *f = *state;
	const uint32_t info[4] = {16};
	uint8_t message[64];
	int fds[40];
	uint32_t before;

	before = count_fds();
	for (int i = 0; i < 40; i++)
		fds[i] = f->file;
	send_bytes(f, message, build(f, message, GET_INFO, 0, info, 16), fds, 40);
	expect_closed(f, -EPROTO);
	assert_int_equal(count_fds(), before - 1);
}

/* More than a message may have, but as many as one system call receives. */
static void descriptors_of_several_pieces(void **state)
{
	struct fixture *f = *state;
	const uint32_t info[4] = {16}, before = count_fds();
	uint8_t message[64];
	size_t n = build(f, message, GET_INFO, 0, info, 16);
	int fds[10];

	for (int i = 0; i < 10; i++)
		fds[i] = f->file;
	send_bytes(f, message, 20, fds, 10);
	assert_int_equal(vnic_vfio_server_event(f->server), 0);
	send_bytes(f, message + 20, n - 20, fds, 10);
	expect_closed(f, -EPROTO);
	assert_int_equal(count_fds(), before - 1);
}

static void a_message_byte_by_byte(void **state)
{
	struct fixture *f = *state;
	const struct map m = {sizeof(m), 3, 0, 0x100000, PAGE};
	uint8_t message[64];
	size_t n = build(f, message, DMA_MAP, 0, &m, sizeof(m));

	for (size_t i = 0; i < n; i++) {
		assert_false(read_reply(f));
		send_bytes(f, message + i, 1, &f->file, i == 0);
		assert_int_equal(vnic_vfio_server_event(f->server), 0);
	}
	assert_true(read_reply(f));
	assert_int_equal(f->reply.error, 0);
	assert_int_equal(f->added, 1);
}

/* Each descriptor belongs to the message with which it was sent. */
static void several_messages_at_once(void **state)
{
	struct fixture *f = *state;
	struct map m = {sizeof(m), 3, 0, 0x100000, PAGE};
	const struct access_message w = {0, 0, 4, {1}};
	uint8_t message[256];
	size_t n = build(f, message, REGION_WRITE, NO_REPLY, &w, 20);

	n += build(f, message + n, REGION_WRITE, 0, &w, 20);
	send_bytes(f, message, n, NULL, 0);
	send_bytes(f, message, build(f, message, DMA_MAP, 0, &m, sizeof(m)), &f->file, 1);
	m.addr = 0x200000;
	send_bytes(f, message, build(f, message, DMA_MAP, 0, &m, sizeof(m)), NULL, 0);
	assert_int_equal(vnic_vfio_server_event(f->server), 0);
	assert_int_equal(f->writes, 2);
	assert_int_equal(f->added, 1);
	assert_non_null(vnic_guest_memory_range(f->memory, 0x100000, 1, true));
	/* The posted write has no reply. */
	for (int i = 0; i < 3; i++) {
		assert_true(read_reply(f));
		assert_int_equal(f->reply.id, 3 + i);
		assert_int_equal(f->reply.error, 0);
	}
	assert_false(read_reply(f));
}

static void a_posted_write_that_is_wrong(void **state)
{
	struct fixture *f = *state;
	const struct access_message w = {4096, 0, 4, {1}};
	uint8_t message[64];

	send_bytes(f, message, build(f, message, REGION_WRITE, NO_REPLY, &w, 20), NULL, 0);
	assert_int_equal(vnic_vfio_server_event(f->server), 0);
	assert_false(read_reply(f));
	assert_int_equal(f->writes, 0);
}

static void malformed_headers(void **state)
{
	static const struct header headers[] = {
		{1, GET_INFO, 15, 0, 0},        {1, GET_INFO, 0, 0, 0},
		{1, GET_INFO, 8193, 0, 0},      {1, GET_INFO, UINT32_MAX, 0, 0},
		{1, GET_INFO, 32, IS_REPLY, 0}, {1, GET_INFO, 32, 7, 0},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
		send_bytes(f, &headers[i], sizeof(headers[i]), NULL, 0);
		expect_closed(f, -EPROTO);
		close(f->client);
		connect_client(f);
		f->disconnects = f->resets = 0;
	}
}

static void a_client_that_ends_in_a_message(void **state)
{
	struct fixture *f = *state;
	const struct map m = {sizeof(m), 3, 0, 0x100000, PAGE};
	const int event = eventfd(0, EFD_CLOEXEC);
	const uint32_t before = count_fds();
	uint8_t message[64];

	assert_int_equal(map(f, 0x200000, 1, 3, true), 0);
	assert_int_equal(set_irqs(f, TRIGGER | WITH_FD, 0, 1, &event, 1), 0);
	build(f, message, DMA_MAP, 0, &m, sizeof(m));
	send_bytes(f, message, 30, &f->file, 1);
	assert_int_equal(vnic_vfio_server_event(f->server), 0);
	shutdown(f->client, SHUT_WR);
	expect_closed(f, -ECONNRESET);
	assert_int_equal(f->removed, 1);
	assert_int_equal(count_fds(), before - 1);
	close(event);
	/* Without a client nothing happens. */
	vnic_vfio_server_interrupt(f->server, 0);
	assert_int_equal(vnic_vfio_server_event(f->server), 0);
	/* The next client starts from the beginning. */
	close(f->client);
	connect_client(f);
	assert_int_equal(ask(f, RESET, NULL, 0), EINVAL);
	assert_int_equal(ask(f, VERSION, offer, sizeof(offer)), 0);
	assert_int_equal(pending(f), 0);
}

static void one_client_at_a_time(void **state)
{
	struct fixture *f = *state;
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
	assert_int_equal(vnic_vfio_server_connect(f->server, ends[0]), -EBUSY);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(ask(f, RESET, NULL, 0), 0);
}

/* It stops reading, and its replies do not pile up in the server's memory. */
static void a_client_that_reads_no_replies(void **state)
{
	struct fixture *f = *state;
	const struct access_message m = {0, VFIO_PCI_CONFIG_REGION_INDEX, 256, {0}};
	uint8_t message[64];
	uint32_t sent = 0, got = 0;
	size_t n;

	while (!vnic_vfio_server_is_writing(f->server)) {
		n = build(f, message, REGION_READ, 0, &m, 16);
		send_bytes(f, message, n, NULL, 0);
		sent++;
		assert_int_equal(vnic_vfio_server_event(f->server), 0);
		assert_true(sent < 100000);
	}
	send_bytes(f, message, build(f, message, RESET, 0, NULL, 0), NULL, 0);
	assert_int_equal(vnic_vfio_server_event(f->server), 0);
	assert_int_equal(f->resets, 0);
	while (got < sent) {
		got += read_reply(f);
		assert_int_equal(vnic_vfio_server_event(f->server), 0);
	}
	assert_false(vnic_vfio_server_is_writing(f->server));
	assert_int_equal(f->resets, 1);
}

static void bad_functions(void **state)
{
	struct fixture *f = *state;
	struct vnic_vfio_attr attr = {.function = function, .memory = f->memory};
	struct vnic_vfio_server *server;

#define REFUSED(change)                                                             \
	do {                                                                        \
		attr.function = function;                                           \
		attr.function.change;                                               \
		assert_int_equal(vnic_vfio_server_create(&attr, &server), -EINVAL); \
	} while (0)
	REFUSED(bar_size[0] = 2048);
	REFUSED(bar_size[0] = 12288);
	REFUSED(bar_size[0] = 0x80000000);
	REFUSED(bar_size[2] = 0);
	REFUSED(bar_size[2] = 4096);
	REFUSED(vectors = 0);
	REFUSED(vectors = 65);
	REFUSED(msix_bar = 6);
	REFUSED(pba_offset = 0);
	REFUSED(pba_offset = 8192);
	REFUSED(pba_offset = 4097);
	REFUSED(table_offset = 8188);
	REFUSED(class_code = 0x1000000);
#undef REFUSED
}

#define TEST(f)        cmocka_unit_test_setup_teardown(f, setup, teardown)
#define UNVERSIONED(f) cmocka_unit_test_setup_teardown(f, setup_unversioned, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNVERSIONED(version_comes_first),
		UNVERSIONED(version_is_checked),
		UNVERSIONED(version_without_capabilities),
		TEST(device_and_regions),
		cmocka_unit_test_setup_teardown(mapped_region, setup_mapped, teardown_mapped),
		TEST(interrupt_indices),
		TEST(config_space_after_power_on),
		TEST(config_space_writes),
		TEST(bus_mastering),
		TEST(bounds_of_regions),
		TEST(registers_reach_the_model),
		TEST(sizes_of_writes_are_checked),
		TEST(many_writes_in_one_message),
		TEST(memory_comes_and_goes),
		TEST(memory_in_use_is_unmapped_later),
		TEST(disconnection_waits_too),
		TEST(lost_memory_is_withdrawn),
		TEST(a_refusal_of_memory_is_told),
		TEST(malformed_maps),
		TEST(interrupts_reach_their_eventfds),
		TEST(malformed_irqs),
		TEST(sizes_of_commands),
		TEST(unneeded_descriptors_are_closed),
		TEST(too_many_descriptors_end_the_connection),
		TEST(descriptors_of_several_pieces),
		TEST(a_message_byte_by_byte),
		TEST(several_messages_at_once),
		TEST(a_posted_write_that_is_wrong),
		TEST(malformed_headers),
		TEST(a_client_that_ends_in_a_message),
		TEST(one_client_at_a_time),
		TEST(a_client_that_reads_no_replies),
		TEST(bad_functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
