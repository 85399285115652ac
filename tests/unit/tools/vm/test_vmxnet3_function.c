/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The vmxnet3 behind its socket: registers, and memory that the hypervisor takes away in parts. */
#include <linux/vfio.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <vnic/regs.h>

#include "send_fds.h"
#include "vm/device/vmxnet3_function.h"

#define PAGE  UINT64_C(4096)
#define BASE  UINT64_C(0x100000)
#define SIZE  (64 * PAGE)
#define READ  1
#define WRITE 2
/* Places in the guest's memory: rings, and the shared area with queue descriptors, apart. */
#define SHARED BASE
#define QUEUES (BASE + PAGE)
#define RINGS  (BASE + 32 * PAGE)

static const uint8_t mac[6] = {2, 1, 2, 3, 4, 5};

struct fixture {
	char dir[32], path[64];
	struct vmxnet3_function f;
	int epoll_fd, client, file;
	uint8_t *memory;
};

static int setup(void **state)
{
	static struct fixture f;
	char error[FUNCTION_ERROR];
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	strcpy(f.dir, "/tmp/urxe-test-XXXXXX");
	assert_non_null(mkdtemp(f.dir));
	snprintf(f.path, sizeof(f.path), "%s/vm", f.dir);
	assert_int_equal(vmxnet3_function_open(&f.f, f.path, mac, 9000, NULL, error), 0);
	f.epoll_fd = epoll_create1(0);
	f.client = socket(AF_UNIX, SOCK_STREAM, 0);
	strcpy(address.sun_path, f.path);
	assert_int_equal(connect(f.client, (struct sockaddr *)&address, sizeof(address)), 0);
	function_accept(&f.f.function, f.epoll_fd);
	assert_true(f.f.function.watched >= 0);
	f.file = memfd_create("guest", 0);
	assert_int_equal(ftruncate(f.file, SIZE), 0);
	f.memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, f.file, 0);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	vmxnet3_function_close(&f->f);
	close(f->client);
	close(f->epoll_fd);
	close(f->file);
	munmap(f->memory, SIZE);
	/* The socket's file is gone. */
	return rmdir(f->dir);
}

/* Sends a command and returns the errno value of the reply, whose body replaces the command's. */
static int ask(struct fixture *f, uint16_t command, void *body, uint32_t size, int fd)
{
	uint32_t message[64] = {(uint32_t)command << 16, 16 + size};
	ssize_t n;

	memcpy(message + 4, body, size);
	assert_int_equal(send_fds(f->client, message, 16 + size, &fd, fd >= 0), 16 + size);
	function_event(&f->f.function, f->epoll_fd);
	n = recv(f->client, message, sizeof(message), 0);
	assert_true(n >= 16);
	if (n > 16)
		memcpy(body, message + 4, (size_t)n - 16);
	return (int)message[3];
}

static void greet(struct fixture *f)
{
	uint32_t body[64] = {0};

	assert_int_equal(ask(f, 1, body, 4, -1), 0);
}

static int map(struct fixture *f, uint64_t addr, uint64_t size, uint32_t flags)
{
	struct {
		uint32_t argsz, flags;
		uint64_t offset, addr, size;
	} m = {32, flags, addr - BASE, addr, size};

	return ask(f, 2, &m, sizeof(m), f->file);
}

static int unmap(struct fixture *f, uint64_t addr, uint64_t size)
{
	struct {
		uint32_t argsz, flags;
		uint64_t addr, size;
	} m = {24, 0, addr, size};

	return ask(f, 3, &m, sizeof(m), -1);
}

static void write_register(struct fixture *f, uint32_t bar, uint64_t offset, uint32_t value)
{
	struct {
		uint64_t offset;
		uint32_t region, count, value;
	} m = {offset, bar, 4, value};

	assert_int_equal(ask(f, 10, &m, 20, -1), 0);
}

static uint32_t read_register(struct fixture *f, uint32_t bar, uint64_t offset)
{
	struct {
		uint64_t offset;
		uint32_t region, count, value;
	} m = {offset, bar, 4, 0};

	assert_int_equal(ask(f, 9, &m, 16, -1), 0);
	return m.value;
}

static void registers_are_those_of_vmxnet3(void **state)
{
	struct fixture *f = *state;

	greet(f);
	assert_int_equal(read_register(f, 7, 0), 0x07b015ad);
	assert_int_equal(read_register(f, 7, 8), 0x02000001);
	assert_int_equal(read_register(f, 1, VMXNET3_REG_VRRS), VMXNET3_REVISIONS);
	assert_int_equal(read_register(f, 1, VMXNET3_REG_MACL), 0x03020102);
	assert_int_equal(read_register(f, 1, VMXNET3_REG_MACH), 0x0504);
	write_register(f, 0, VMXNET3_REG_IMR, 0);
	assert_int_equal(read_register(f, 0, VMXNET3_REG_IMR), 0);
	/* What is no register reads as 0: the additions of urxe as well. */
	assert_int_equal(read_register(f, 1, 0x800), 0);
	write_register(f, 0, VNIC_REG_ASLEEP, 1);
	assert_int_equal(read_register(f, 0, VNIC_REG_ASLEEP), 0);
}

static void activate(struct fixture *f)
{
	struct vmxnet3_driver_shared *shared = (void *)f->memory;
	struct vmxnet3_queue_pair *queues = (void *)(f->memory + (QUEUES - BASE));

	memset(f->memory, 0, SIZE);
	shared->magic = VMXNET3_REV1_MAGIC;
	shared->misc.queue_desc_addr = QUEUES;
	shared->misc.mtu = 9000;
	shared->misc.tx_queues = shared->misc.rx_queues = 1;
	shared->intr.vectors = 1;
	queues->tx.ring_addr = RINGS;
	queues->tx.comp_ring_addr = RINGS + PAGE;
	queues->tx.ring_size = queues->tx.comp_ring_size = 32;
	queues->rx.ring_addr[0] = RINGS + 2 * PAGE;
	queues->rx.comp_ring_addr = RINGS + 3 * PAGE;
	queues->rx.ring_size[0] = queues->rx.comp_ring_size = 32;
	write_register(f, 1, VMXNET3_REG_DSAL, (uint32_t)SHARED);
	write_register(f, 1, VMXNET3_REG_DSAH, 0);
	write_register(f, 1, VMXNET3_REG_CMD, (uint32_t)VMXNET3_CMD_ACTIVATE_DEV);
}

static void only_unmapped_rings_break_the_nic(void **state)
{
	struct fixture *f = *state;

	greet(f);
	activate(f);
	assert_int_equal(read_register(f, 1, VMXNET3_REG_CMD), 1);
	assert_int_equal(vnic_device_mtu(f->f.dev), 0);
	assert_int_equal(map(f, BASE, SIZE, READ | WRITE), 0);
	activate(f);
	assert_int_equal(read_register(f, 1, VMXNET3_REG_CMD), 0);
	assert_int_equal(vnic_device_mtu(f->f.dev), 9000);
	/* The part behind the rings, and one between: nothing of the NIC's. */
	assert_int_equal(unmap(f, RINGS + 8 * PAGE, 4 * PAGE), 0);
	assert_int_equal(unmap(f, BASE + 4 * PAGE, PAGE), 0);
	assert_int_equal(vnic_device_state(f->f.dev), VNIC_DEVICE_ACTIVE);
	/* A ring. */
	assert_int_equal(unmap(f, RINGS + 3 * PAGE, PAGE), 0);
	assert_int_equal(vnic_device_state(f->f.dev), VNIC_DEVICE_BROKEN);
	assert_int_equal(read_register(f, 1, VMXNET3_REG_ECR), VMXNET3_ECR_RQERR);
	/* The shared area. */
	assert_int_equal(unmap(f, SHARED, PAGE), 0);
	assert_int_equal(vnic_device_state(f->f.dev), VNIC_DEVICE_DOWN);
	assert_int_equal(read_register(f, 1, VMXNET3_REG_ECR), 0);
	assert_int_equal(map(f, SHARED, PAGE, READ | WRITE), 0);
	assert_int_equal(map(f, RINGS + 3 * PAGE, PAGE, READ | WRITE), 0);
	activate(f);
	assert_int_equal(read_register(f, 1, VMXNET3_REG_CMD), 0);
}

/* The hypervisor shortens the file: the transmit ring is lost, the shared area is not. */
static void a_lost_ring_stops_the_nic(void **state)
{
	struct fixture *f = *state;
	struct vnic_tx_frame frame;

	assert_int_equal(vnic_guest_memory_catch_faults(NULL, NULL), 0);
	greet(f);
	assert_int_equal(map(f, BASE, SIZE, READ | WRITE), 0);
	activate(f);
	assert_int_equal(vnic_device_state(f->f.dev), VNIC_DEVICE_ACTIVE);
	assert_int_equal(ftruncate(f->file, RINGS - BASE), 0);
	write_register(f, 0, VMXNET3_REG_TXPROD, 1);
	assert_int_equal(vnic_device_tx(f->f.dev, 0, &frame, 1), 0);
	assert_true(function_check_memory(&f->f.function));
	assert_int_equal(vnic_device_state(f->f.dev), VNIC_DEVICE_BROKEN);
	assert_true(read_register(f, 1, VMXNET3_REG_ECR) & VMXNET3_ECR_TQERR);
}

/* The device writes to completion rings: memory that it may only read is none. */
static void read_only_memory_does_not_activate_the_nic(void **state)
{
	struct fixture *f = *state;

	greet(f);
	assert_int_equal(map(f, BASE, SIZE, READ), 0);
	activate(f);
	assert_int_equal(read_register(f, 1, VMXNET3_REG_CMD), 1);
}

static void the_end_of_the_client_resets_the_nic(void **state)
{
	struct fixture *f = *state;

	greet(f);
	assert_int_equal(map(f, BASE, SIZE, READ | WRITE), 0);
	activate(f);
	assert_int_equal(vnic_device_state(f->f.dev), VNIC_DEVICE_ACTIVE);
	shutdown(f->client, SHUT_RDWR);
	function_event(&f->f.function, f->epoll_fd);
	assert_int_equal(f->f.function.watched, -1);
	assert_int_equal(vnic_device_state(f->f.dev), VNIC_DEVICE_DOWN);
}

/* Two pieces of memory go at once; the NIC must not know the first one any more. */
static void removal_of_all_memory_takes_the_nic_down(void **state)
{
	struct fixture *f = *state;
	const uint32_t all[6] = {24, VFIO_DMA_UNMAP_FLAG_ALL};
	uint32_t body[6];

	greet(f);
	assert_int_equal(map(f, BASE, RINGS - BASE, READ | WRITE), 0);
	assert_int_equal(map(f, RINGS, SIZE - (RINGS - BASE), READ | WRITE), 0);
	activate(f);
	assert_int_equal(read_register(f, 1, VMXNET3_REG_CMD), 0);
	memcpy(body, all, sizeof(body));
	assert_int_equal(ask(f, 3, body, sizeof(body), -1), 0);
	assert_int_equal(vnic_device_state(f->f.dev), VNIC_DEVICE_DOWN);
	activate(f);
	assert_int_equal(read_register(f, 1, VMXNET3_REG_CMD), 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(registers_are_those_of_vmxnet3),
		TEST(only_unmapped_rings_break_the_nic),
		TEST(removal_of_all_memory_takes_the_nic_down),
		TEST(a_lost_ring_stops_the_nic),
		TEST(read_only_memory_does_not_activate_the_nic),
		TEST(the_end_of_the_client_resets_the_nic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
