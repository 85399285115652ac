/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The PVRDMA behind its socket: a hypervisor passes on the memory of its machine, and shortens the
 * file while the machine uses it. Most registers are accessed without the socket.
 */
#include <errno.h>
#include <fcntl.h>
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
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "pvrdma_driver.h"
#include "send_fds.h"
#include "vm/device/pvrdma_function.h"

#define VERSION      1
#define DMA_MAP      2
#define READ_WRITE   3
#define REGION_WRITE 10
#define VA           0x700000u
#define BUFFER_SIZE  (3 * PV_PAGE)
#define ACCESS       15u

/* The linker puts this function in the place of pvrdma_command_waits. */
bool __wrap_pvrdma_command_waits(const struct pvrdma *dev);
static bool command_waits;

bool __wrap_pvrdma_command_waits(const struct pvrdma *dev)
{
	(void)dev;
	return command_waits;
}

/* And this one: the time goes on by 1 us at each look. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
static uint64_t time_ns = 1;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	(void)clock;
	time_ns += 1000;
	*ts = (struct timespec){.tv_sec = (time_t)(time_ns / 1000000000),
				.tv_nsec = (long)(time_ns % 1000000000)};
	return 0;
}

struct fixture {
	char dir[32], path[64];
	struct pvrdma_owner owner;
	struct pvrdma_function f;
	int epoll_fd, client;
	struct guest guest;
	struct net net;
	struct cq cq;
	struct qp qp[2]; /* connected to each other */
	struct buffer buffer;
	/* A region with the same addresses; its second page is in the extra region of the guest,
	 * which is the end of the file. */
	struct pages mixed;
	uint32_t mixed_handle, mixed_key;
};

static void connect_client(struct fixture *f)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	f->epoll_fd = epoll_create1(0);
	f->client = socket(AF_UNIX, SOCK_STREAM, 0);
	strcpy(address.sun_path, f->path);
	assert_int_equal(connect(f->client, (struct sockaddr *)&address, sizeof(address)), 0);
	function_accept(&f->f.function, f->epoll_fd);
	assert_true(f->f.function.watched >= 0);
}

static void send_command(struct fixture *f, uint16_t command, const void *body, uint32_t size,
			 int fd)
{
	uint32_t message[64] = {(uint32_t)command << 16, 16 + size};

	memcpy(message + 4, body, size);
	assert_int_equal(send_fds(f->client, message, 16 + size, &fd, fd >= 0), 16 + size);
	function_event(&f->f.function, f->epoll_fd);
}

/* Sends a command, and returns the errno value of the reply. */
static int ask(struct fixture *f, uint16_t command, const void *body, uint32_t size, int fd)
{
	uint32_t message[64];

	send_command(f, command, body, size, fd);
	assert_true(recv(f->client, message, sizeof(message), 0) >= 16);
	return (int)message[3];
}

static int map_fd(struct fixture *f, uint64_t addr, uint64_t size, uint64_t offset, int fd)
{
	const struct {
		uint32_t argsz, flags;
		uint64_t offset, addr, size;
	} map = {32, READ_WRITE, offset, addr, size};

	return ask(f, DMA_MAP, &map, sizeof(map), fd);
}

static int map(struct fixture *f, uint64_t addr, uint64_t size, uint64_t offset)
{
	return map_fd(f, addr, size, offset, f->guest.fd);
}

static int write_value(struct fixture *f, uint32_t bar, uint64_t offset, uint32_t value)
{
	const struct {
		uint64_t offset;
		uint32_t region, count, value;
	} write = {offset, bar, sizeof(value), value};

	return ask(f, REGION_WRITE, &write, 20, -1);
}

/* The function has the device of the driver by hand, which counts interrupts. */
static void use_driver_by_hand(struct fixture *f)
{
	struct guest *g = &f->guest;

	guest_open(g, &(struct guest_attr){.id = 1});
	pvrdma_destroy(g->dev);
	vnic_guest_memory_destroy(g->memory);
	pvrdma_destroy(f->f.dev);
	g->attr.memory = g->memory = f->f.function.memory;
	assert_int_equal(pvrdma_create(&g->attr, &g->dev), 0);
	f->f.dev = g->dev;
	f->net.guest[0] = g;
}

static void map_all(struct fixture *f)
{
	const uint32_t version = 0;

	assert_int_equal(ask(f, VERSION, &version, sizeof(version), -1), 0);
	assert_int_equal(write_value(f, VFIO_PCI_CONFIG_REGION_INDEX, PCI_COMMAND,
				     PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER),
			 0);
	assert_int_equal(map(f, 0, GUEST_LOW_SIZE, 0), 0);
	assert_int_equal(map(f, GUEST_HIGH, GUEST_HIGH_SIZE, GUEST_LOW_SIZE), 0);
	assert_int_equal(map(f, GUEST_EXTRA, GUEST_EXTRA_SIZE, GUEST_LOW_SIZE + GUEST_HIGH_SIZE),
			 0);
}

static void open_objects(struct fixture *f)
{
	const struct qp_attr attr = {.type = PV_QPT_RC, .send_cq = &f->cq, .recv_cq = &f->cq};
	struct guest *g = &f->guest;
	struct pv_cmd_create_mr create = {
		.start = VA, .length = BUFFER_SIZE, .access_flags = ACCESS, .nchunks = 3};
	uint64_t *dir;

	guest_start(g);
	cq_open(g, &f->cq, 64);
	for (unsigned i = 0; i < 2; i++)
		qp_open(g, &f->qp[i], &attr);
	for (unsigned i = 0; i < 2; i++)
		qp_connect(g, &f->qp[i], g, &f->qp[!i]);
	buffer_open(g, &f->buffer, VA, BUFFER_SIZE, ACCESS);
	guest_pages(g, 3, &f->mixed);
	dir = guest_at(g, f->mixed.dir);
	((uint64_t *)guest_at(g, dir[0]))[1] = GUEST_EXTRA;
	create.pd_handle = g->pd;
	create.pdir_dma = f->mixed.dir;
	assert_int_equal(mr_create(g, &create, &f->mixed_handle, &f->mixed_key), 0);
}

static int setup(void **state)
{
	static struct fixture f;
	const struct pvrdma_function_attr attr = {.path = f.path,
						  .mac = {2, 0, 0, 0, 1, 1},
						  .mtu = GUEST_MTU,
						  .device_owner = &f.owner};
	char error[FUNCTION_ERROR];

	f = (struct fixture){0};
	strcpy(f.dir, "/tmp/urxe-test-XXXXXX");
	assert_non_null(mkdtemp(f.dir));
	snprintf(f.path, sizeof(f.path), "%s/vm", f.dir);
	assert_int_equal(pvrdma_function_open(&f.f, &attr, error), 0);
	use_driver_by_hand(&f);
	connect_client(&f);
	map_all(&f);
	open_objects(&f);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	pvrdma_function_close(&f->f);
	f->guest.dev = NULL;
	f->guest.memory = NULL;
	guest_pages_free(&f->cq.pages);
	for (unsigned i = 0; i < 2; i++)
		guest_pages_free(&f->qp[i].pages);
	guest_pages_free(&f->buffer.pages);
	guest_pages_free(&f->mixed);
	guest_close(&f->guest);
	close(f->client);
	close(f->epoll_fd);
	return rmdir(f->dir);
}

/* The status of a WRITE of a page from the buffer to a page of the mixed region. */
static uint32_t write_status(struct fixture *f, unsigned qp, unsigned page)
{
	const struct pvrdma_sge sge = buffer_sge(&f->buffer, 0, PV_PAGE);
	const struct pvrdma_sq_wqe_hdr header = {
		.num_sge = 1,
		.opcode = PVRDMA_WR_RDMA_WRITE,
		.send_flags = URXE_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = VA + page * PV_PAGE, .rkey = f->mixed_key},
	};
	struct pvrdma_cqe cqe;

	qp_post_send(&f->guest, &f->qp[qp], &header, &sge);
	net_run(&f->net);
	assert_true(cq_poll(&f->guest, &f->cq, &cqe));
	return cqe.status;
}

static void reconnect(struct fixture *f)
{
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(qp_to(&f->guest, &f->qp[i], URXE_QPS_RESET), 0);
	for (unsigned i = 0; i < 2; i++)
		qp_connect(&f->guest, &f->qp[i], &f->guest, &f->qp[!i]);
}

static void a_shortened_file_ends_requests_in_errors(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(vnic_guest_memory_catch_faults(NULL, NULL), 0);
	assert_int_equal(write_status(f, 0, 1), PVRDMA_WC_SUCCESS);
	assert_false(function_check_memory(&f->f.function));
	assert_int_equal(ftruncate(f->guest.fd, GUEST_LOW_SIZE + GUEST_HIGH_SIZE), 0);
	assert_int_equal(write_status(f, 0, 1), PVRDMA_WC_REM_ACCESS_ERR);
	assert_true(function_check_memory(&f->f.function));
	assert_false(function_check_memory(&f->f.function));
	reconnect(f);
	assert_int_equal(write_status(f, 1, 1), PVRDMA_WC_REM_ACCESS_ERR);
	reconnect(f);
	assert_int_equal(write_status(f, 1, 0), PVRDMA_WC_SUCCESS);
	assert_int_equal(write_status(f, 0, 2), PVRDMA_WC_SUCCESS);
}

/* The process goes on with the next machine. */
static void the_next_machine_has_its_memory(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(vnic_guest_memory_catch_faults(NULL, NULL), 0);
	assert_int_equal(ftruncate(f->guest.fd, GUEST_LOW_SIZE + GUEST_HIGH_SIZE), 0);
	assert_int_equal(write_status(f, 0, 1), PVRDMA_WC_REM_ACCESS_ERR);
	assert_true(function_check_memory(&f->f.function));
	shutdown(f->client, SHUT_RDWR);
	function_event(&f->f.function, f->epoll_fd);
	assert_int_equal(f->f.function.watched, -1);
	close(f->client);
	close(f->epoll_fd);
	assert_int_equal(ftruncate(f->guest.fd, GUEST_MEMORY), 0);
	connect_client(f);
	map_all(f);
	assert_non_null(
		vnic_guest_memory_range(f->f.function.memory, GUEST_EXTRA, GUEST_EXTRA_SIZE, true));
	assert_false(function_check_memory(&f->f.function));
}

/* An access to such a file may wait for another process. */
static void only_files_of_memory_are_mapped(void **state)
{
	struct fixture *f = *state;
	const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	assert_int_equal(map_fd(f, 0x300000000, PV_PAGE, 0, file), EOPNOTSUPP);
	close(file);
}

/* The main loop expects further doorbells after a doorbell, and not after another register. */
static void messages_of_doorbells_are_noted(void **state)
{
	struct fixture *f = *state;
	uint64_t rung_at;

	assert_int_equal(write_value(f, PVRDMA_BAR_REG, PV_REG_IMR, 0), 0);
	assert_int_equal(f->f.doorbells.rung_at, 0);
	assert_int_equal(write_value(f, PVRDMA_BAR_UAR, PVRDMA_UAR_QP_OFFSET, 0), 0);
	assert_int_not_equal(f->f.doorbells.rung_at, 0);
	rung_at = f->f.doorbells.rung_at;
	assert_int_equal(write_value(f, PVRDMA_BAR_REG, PV_REG_IMR, 0), 0);
	assert_int_equal(f->f.doorbells.rung_at, rung_at);
	assert_int_equal(write_value(f, PVRDMA_BAR_UAR, PVRDMA_UAR_CQ_OFFSET, 0), 0);
	assert_true(f->f.doorbells.rung_at > rung_at);
}

/* The device gets a command that waits for the HCA. */
static void begin_command(struct fixture *f)
{
	const struct {
		uint64_t offset;
		uint32_t region, count, value;
	} write = {PV_REG_REQUEST, PVRDMA_BAR_REG, sizeof(write.value), 0};

	command_waits = true;
	send_command(f, REGION_WRITE, &write, 20, -1);
}

static bool was_replied(struct fixture *f)
{
	uint32_t message[64];

	function_event(&f->f.function, f->epoll_fd);
	return recv(f->client, message, sizeof(message), MSG_DONTWAIT) >= 16;
}

static void a_command_that_waits_for_a_moment_is_replied_after_its_response(void **state)
{
	struct fixture *f = *state;

	begin_command(f);
	assert_false(was_replied(f));
	command_waits = false;
	assert_true(was_replied(f));
}

static void a_command_that_waits_for_long_does_not_stop_the_processor(void **state)
{
	struct fixture *f = *state;

	begin_command(f);
	assert_false(was_replied(f));
	time_ns += COMMAND_HOLD_NS;
	assert_true(was_replied(f));
	/* Doorbells do not wait for the command. */
	assert_int_equal(write_value(f, PVRDMA_BAR_UAR, PVRDMA_UAR_QP_OFFSET, 0), 0);
	command_waits = false;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_shortened_file_ends_requests_in_errors),
		TEST(the_next_machine_has_its_memory),
		TEST(only_files_of_memory_are_mapped),
		TEST(messages_of_doorbells_are_noted),
		TEST(a_command_that_waits_for_a_moment_is_replied_after_its_response),
		TEST(a_command_that_waits_for_long_does_not_stop_the_processor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
