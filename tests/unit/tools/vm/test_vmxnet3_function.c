/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The vmxnet3 behind its socket: registers, and memory that the hypervisor takes away in parts. */
#include <errno.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
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

static void greet_without_mastering(struct fixture *f)
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

static void set_command(struct fixture *f, uint32_t command)
{
	write_register(f, VFIO_PCI_CONFIG_REGION_INDEX, PCI_COMMAND, command);
}

static void greet(struct fixture *f)
{
	greet_without_mastering(f);
	set_command(f, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
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

/* A driver that resumes from its disk selects no revision, after another one has selected an older.
 */
static void a_reset_of_the_function_forgets_the_revision(void **state)
{
	struct fixture *f = *state;
	uint32_t command = (uint32_t)VMXNET3_CMD_GET_DISABLED_OFFLOADS; /* of revision 9 */

	greet(f);
	write_register(f, 1, VMXNET3_REG_VRRS, 1);
	write_register(f, 1, VMXNET3_REG_CMD, (uint32_t)VMXNET3_CMD_RESET_DEV);
	write_register(f, 1, VMXNET3_REG_CMD, command);
	assert_int_equal(read_register(f, 1, VMXNET3_REG_CMD), 1);
	assert_int_equal(ask(f, 13, (uint32_t[1]){0}, 0, -1), 0);
	write_register(f, 1, VMXNET3_REG_CMD, command);
	assert_int_equal(read_register(f, 1, VMXNET3_REG_CMD), VMXNET3_OFFLOAD_LRO);
}

/* --- Bus mastering */

#define BUFFER (RINGS + 4 * PAGE)

/* Gives the NIC's only vector an eventfd, which it returns. */
static int open_interrupt(struct fixture *f)
{
	uint32_t irqs[5] = {20, VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
			    VFIO_PCI_MSIX_IRQ_INDEX, 0, 1};
	const int fd = eventfd(0, EFD_NONBLOCK);

	assert_int_equal(ask(f, 8, irqs, sizeof(irqs), fd), 0);
	write_register(f, 0, VMXNET3_REG_IMR, 0);
	return fd;
}

static bool was_interrupted(int fd)
{
	uint64_t n;

	return read(fd, &n, sizeof(n)) == sizeof(n);
}

/* An active NIC with the right to access memory, one buffer for a broadcast, and one frame to send.
 */
static void activate_with_frames(struct fixture *f)
{
	struct vmxnet3_driver_shared *shared = (void *)f->memory;
	struct vmxnet3_rx_desc *rx = (void *)(f->memory + (RINGS + 2 * PAGE - BASE));
	struct vmxnet3_tx_desc *tx = (void *)(f->memory + (RINGS - BASE));

	greet(f);
	assert_int_equal(map(f, BASE, SIZE, READ | WRITE), 0);
	activate(f);
	assert_int_equal(read_register(f, 1, VMXNET3_REG_CMD), 0);
	shared->rx_filter.mode = VMXNET3_RXM_PROMISC;
	write_register(f, 1, VMXNET3_REG_CMD, (uint32_t)VMXNET3_CMD_UPDATE_RX_MODE);
	*rx = (struct vmxnet3_rx_desc){.addr = BUFFER, .len = PAGE | VMXNET3_RXD_GEN};
	*tx = (struct vmxnet3_tx_desc){.addr = BUFFER + PAGE,
				       .len = 60 | VMXNET3_TXD_GEN,
				       .flags = VMXNET3_TXD_EOP | VMXNET3_TXD_CQ};
}

static const uint8_t broadcast[60] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 1};

/* The device after a driver that the kernel ended: its pages belong to others. */
static void without_bus_mastering_the_nic_touches_no_memory(void **state)
{
	struct fixture *f = *state;
	uint8_t *const before = malloc(SIZE);
	struct vnic_tx_frame frame;
	int fd;

	activate_with_frames(f);
	fd = open_interrupt(f);
	vnic_device_set_polling(f->f.dev, true);
	set_command(f, PCI_COMMAND_MEMORY);
	memcpy(before, f->memory, SIZE);

	assert_int_equal(vnic_device_rx(f->f.dev, 0, broadcast, sizeof(broadcast)), -ENETDOWN);
	assert_int_equal(vnic_device_tx(f->f.dev, 0, &frame, 1), 0);
	vnic_device_set_polling(f->f.dev, false);
	vnic_device_set_link(f->f.dev, 0);
	vnic_device_flush(f->f.dev);
	write_register(f, 1, VMXNET3_REG_ECR, UINT32_MAX);
	write_register(f, 1, VMXNET3_REG_CMD, (uint32_t)VMXNET3_CMD_GET_STATS);
	assert_int_equal(read_register(f, 1, VMXNET3_REG_CMD), 1);
	write_register(f, 1, VMXNET3_REG_CMD, (uint32_t)VMXNET3_CMD_UPDATE_RX_MODE);
	assert_int_equal(read_register(f, 1, VMXNET3_REG_CMD), 1);
	assert_memory_equal(f->memory, before, SIZE);
	assert_false(was_interrupted(fd));

	/* The driver learns of the link when the NIC has the right again. */
	set_command(f, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	assert_int_equal(read_register(f, 1, VMXNET3_REG_ECR), VMXNET3_ECR_LINK);
	assert_true(was_interrupted(fd));
	vnic_device_set_link(f->f.dev, 10000);
	assert_int_equal(vnic_device_rx(f->f.dev, 0, broadcast, sizeof(broadcast)), 0);
	assert_memory_equal(f->memory + (BUFFER - BASE), broadcast, sizeof(broadcast));
	assert_int_equal(vnic_device_tx(f->f.dev, 0, &frame, 1), 1);
	vnic_device_tx_done(f->f.dev, 0, 1);
	vnic_device_flush(f->f.dev);
	assert_true(was_interrupted(fd));
	close(fd);
	free(before);
}

static void without_bus_mastering_no_command_activates_the_nic(void **state)
{
	struct fixture *f = *state;

	activate_with_frames(f);
	set_command(f, PCI_COMMAND_MEMORY);
	/* Neither the driver's nor the hypervisor's reset gives a right. */
	write_register(f, 1, VMXNET3_REG_CMD, (uint32_t)VMXNET3_CMD_RESET_DEV);
	activate(f);
	assert_int_equal(read_register(f, 1, VMXNET3_REG_CMD), 1);
	set_command(f, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	assert_int_equal(ask(f, 13, (uint32_t[1]){0}, 0, -1), 0);
	activate(f);
	assert_int_equal(read_register(f, 1, VMXNET3_REG_CMD), 1);
	set_command(f, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	activate(f);
	assert_int_equal(read_register(f, 1, VMXNET3_REG_CMD), 0);
	/* The next kernel asks for the sizes of the BARs, which resets the function. */
	set_command(f, PCI_COMMAND_MEMORY);
	write_register(f, VFIO_PCI_CONFIG_REGION_INDEX, PCI_BASE_ADDRESS_1, UINT32_MAX);
	activate(f);
	assert_int_equal(read_register(f, 1, VMXNET3_REG_CMD), 1);
}

static void a_new_nic_is_no_bus_master(void **state)
{
	struct fixture *f = *state;

	greet_without_mastering(f);
	assert_int_equal(map(f, BASE, SIZE, READ | WRITE), 0);
	activate(f);
	assert_int_equal(read_register(f, 1, VMXNET3_REG_CMD), 1);
}

/* Rings that go meanwhile take the NIC down, without a word in the driver's memory. */
static void without_bus_mastering_lost_rings_take_the_nic_down(void **state)
{
	struct fixture *f = *state;
	uint8_t *const before = malloc(SIZE);

	activate_with_frames(f);
	set_command(f, PCI_COMMAND_MEMORY);
	memcpy(before, f->memory, SIZE);
	assert_int_equal(unmap(f, RINGS, PAGE), 0);
	assert_int_equal(vnic_device_state(f->f.dev), VNIC_DEVICE_DOWN);
	assert_memory_equal(f->memory, before, SIZE);
	free(before);
}

static int set_state(struct fixture *f, uint32_t state)
{
	uint32_t body[64] = {16, 1u << 17 | 2, state};

	return ask(f, 16, body, 16, -1);
}

/* The machine may run on another host already, with the same memory. If it goes on here, its driver
 * learns of the loss. */
static void a_stopped_nic_that_loses_its_rings_touches_no_memory(void **state)
{
	struct fixture *f = *state;
	uint8_t *const before = malloc(SIZE);
	int fd;

	activate_with_frames(f);
	fd = open_interrupt(f);
	assert_int_equal(set_state(f, VFIO_DEVICE_STATE_STOP), 0);
	was_interrupted(fd);
	memcpy(before, f->memory, SIZE);
	assert_int_equal(unmap(f, RINGS, PAGE), 0);
	assert_int_equal(vnic_device_state(f->f.dev), VNIC_DEVICE_DOWN);
	assert_memory_equal(f->memory, before, SIZE);
	assert_false(was_interrupted(fd));
	assert_int_equal(set_state(f, VFIO_DEVICE_STATE_RUNNING), 0);
	assert_int_equal(vnic_device_state(f->f.dev), VNIC_DEVICE_BROKEN);
	assert_int_not_equal(
		read_register(f, 1, VMXNET3_REG_ECR) & (VMXNET3_ECR_TQERR | VMXNET3_ECR_RQERR), 0);
	assert_true(was_interrupted(fd));
	close(fd);
	free(before);
}

static void a_stopped_nic_that_loses_the_shared_area_stays_down(void **state)
{
	struct fixture *f = *state;

	activate_with_frames(f);
	assert_int_equal(set_state(f, VFIO_DEVICE_STATE_STOP), 0);
	assert_int_equal(unmap(f, RINGS, PAGE), 0);
	assert_int_equal(unmap(f, BASE, PAGE), 0);
	assert_int_equal(set_state(f, VFIO_DEVICE_STATE_RUNNING), 0);
	assert_int_equal(vnic_device_state(f->f.dev), VNIC_DEVICE_DOWN);
}

/* Another process takes the NIC over: the saved command register tells it. */
static void a_restored_nic_has_no_more_rights_than_before(void **state)
{
	struct fixture *f = *state;
	struct vnic_vfio_handover h;
	struct vmxnet3_function other;
	char error[FUNCTION_ERROR];
	uint32_t events;

	activate_with_frames(f);
	set_command(f, PCI_COMMAND_MEMORY);
	assert_int_equal(vnic_vfio_server_stop(f->f.function.server), 0);
	assert_int_equal(vnic_vfio_server_hand_over(f->f.function.server, &h), 0);
	/* What another process receives are descriptors of its own. */
	for (uint32_t i = 0; i < h.n_fds; i++)
		h.fds[i] = dup(h.fds[i]);
	assert_int_equal(vmxnet3_function_open(&other, NULL, mac, 9000, NULL, error), 0);
	vnic_device_set_link(other.dev, 25000);
	assert_int_equal(vnic_vfio_server_take_over(other.function.server, &h), 0);
	vnic_vfio_server_resume(other.function.server);
	assert_int_equal(vnic_device_state(other.dev), VNIC_DEVICE_ACTIVE);
	assert_int_equal(vnic_device_rx(other.dev, 0, broadcast, sizeof(broadcast)), -ENETDOWN);
	vnic_device_set_bus_master(other.dev, true);
	/* The driver knows the link of before. */
	assert_int_equal(vnic_device_reg_read(other.dev, 1, VMXNET3_REG_ECR, &events), 0);
	assert_int_equal(events, VMXNET3_ECR_LINK);
	assert_int_equal(vnic_device_rx(other.dev, 0, broadcast, sizeof(broadcast)), 0);
	vmxnet3_function_close(&other);
	for (uint32_t i = 0; i < h.n_fds; i++)
		if (h.fds[i] >= 0)
			close(h.fds[i]);
	free(h.stream);
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
		TEST(a_reset_of_the_function_forgets_the_revision),
		TEST(without_bus_mastering_the_nic_touches_no_memory),
		TEST(a_new_nic_is_no_bus_master),
		TEST(without_bus_mastering_no_command_activates_the_nic),
		TEST(without_bus_mastering_lost_rings_take_the_nic_down),
		TEST(a_stopped_nic_that_loses_its_rings_touches_no_memory),
		TEST(a_stopped_nic_that_loses_the_shared_area_stays_down),
		TEST(a_restored_nic_has_no_more_rights_than_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
