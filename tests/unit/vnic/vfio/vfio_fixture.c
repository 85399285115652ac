/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vfio_fixture.h"
#include "send_fds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

const struct vnic_vfio_function vfio_function = {
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

void connect_client(struct fixture *f)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends),
			 0);
	assert_int_equal(vnic_vfio_server_connect(f->server, ends[0]), 0);
	f->client = ends[1];
}

int vfio_setup_function(void **state, const struct vnic_vfio_function *served)
{
	static struct fixture f;
	struct vnic_vfio_attr attr = {.function = *served,
				      .ops = {model_read, model_write, model_reset, model_added,
					      model_removed, model_settled, model_refused,
					      model_lost, model_bus_master},
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

int vfio_setup_unversioned(void **state)
{
	return vfio_setup_function(state, &vfio_function);
}

int vfio_teardown(void **state)
{
	struct fixture *f = *state;

	close(f->client);
	vnic_vfio_server_destroy(f->server);
	vnic_guest_memory_destroy(f->memory);
	return close(f->file);
}

void send_bytes(struct fixture *f, const void *bytes, size_t n, const int *fds, uint32_t n_fds)
{
	assert_int_equal(send_fds(f->client, bytes, n, fds, n_fds), n);
}

size_t build(struct fixture *f, uint8_t *to, uint16_t command, uint32_t flags, const void *body,
	     uint32_t size)
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
bool read_reply(struct fixture *f)
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
int ask_with(struct fixture *f, uint16_t command, const void *body, uint32_t size, const int *fds,
	     uint32_t n_fds)
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

int ask(struct fixture *f, uint16_t command, const void *body, uint32_t size)
{
	return ask_with(f, command, body, size, NULL, 0);
}

uint32_t body_size(const struct fixture *f)
{
	return f->reply.size - (uint32_t)sizeof(f->reply);
}

int vfio_setup(void **state)
{
	int rc = vfio_setup_unversioned(state);

	return rc ?: ask(*state, VERSION, VFIO_OFFER, sizeof(VFIO_OFFER));
}

/* The server has closed the connection, after the model's reset. */
void expect_closed(struct fixture *f, int rc)
{
	uint32_t regions;
	char byte;
	ssize_t n;

	assert_int_equal(vnic_vfio_server_event(f->server), rc);
	assert_int_equal(vnic_vfio_server_fd(f->server), -1);
	vnic_guest_memory_regions(f->memory, &regions);
	assert_int_equal(regions, 0);
	assert_int_equal(f->resets, 1);
	/* ECONNRESET: the server did not read all. */
	n = recv(f->client, &byte, 1, MSG_DONTWAIT);
	assert_true(n == 0 || (n < 0 && errno == ECONNRESET));
}

uint32_t count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	uint32_t n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* --- Regions */

int read_region(struct fixture *f, uint32_t region, uint64_t offset, uint32_t count)
{
	const struct access_message m = {offset, region, count, {0}};
	int rc = ask(f, REGION_READ, &m, 16);

	if (!rc) {
		assert_int_equal(body_size(f), 16 + count);
		assert_memory_equal(f->body, &m, 16);
	}
	return rc;
}

int write_region(struct fixture *f, uint32_t region, uint64_t offset, uint32_t count,
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

uint32_t read_config(struct fixture *f, uint32_t offset, uint32_t count)
{
	uint32_t value = 0;

	assert_int_equal(read_region(f, VFIO_PCI_CONFIG_REGION_INDEX, offset, count), 0);
	memcpy(&value, f->body + 16, count);
	return value;
}

void write_config(struct fixture *f, uint32_t offset, uint32_t count, uint32_t value)
{
	assert_int_equal(write_region(f, VFIO_PCI_CONFIG_REGION_INDEX, offset, count, value), 0);
}

/* --- Memory */

int map(struct fixture *f, uint64_t addr, uint64_t pages, uint32_t flags, bool with_fd)
{
	const struct map m = {sizeof(m), flags, 2 * PAGE, addr, pages * PAGE};

	return ask_with(f, DMA_MAP, &m, sizeof(m), &f->file, with_fd);
}

int unmap(struct fixture *f, uint64_t addr, uint64_t pages, uint32_t flags)
{
	const struct map m = {24, flags, addr, pages * PAGE, 0};

	return ask(f, DMA_UNMAP, &m, 24);
}

/* --- Interrupts */

int set_irqs(struct fixture *f, uint32_t flags, uint32_t start, uint32_t count, const int *fds,
	     uint32_t n_fds)
{
	struct irqs m = {20, flags, VFIO_PCI_MSIX_IRQ_INDEX, start, count, {0}};
	const uint32_t data = flags & VFIO_IRQ_SET_DATA_BOOL && count < 64 ? count : 0;

	m.argsz += data;
	memset(m.data, 1, sizeof(m.data));
	return ask_with(f, SET_IRQS, &m, 20 + data, fds, n_fds);
}

uint64_t take(int fd)
{
	struct pollfd pfd = {fd, POLLIN, 0};
	eventfd_t value = 0;

	if (poll(&pfd, 1, 0) == 1)
		eventfd_read(fd, &value);
	return value;
}

uint32_t pending(struct fixture *f)
{
	assert_int_equal(read_region(f, 2, 4096, 4), 0);
	return f->body[16] | f->body[17] << 8 | (uint32_t)f->body[18] << 16;
}
