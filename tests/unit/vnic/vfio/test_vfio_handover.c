/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A vfio-user server whose connection the server of another process takes over.
 *
 * `test_vnic_vfio_handover --write FILE` writes a stream of the current version, to be kept.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vnic/vfio_server.h>

#include "kept_stream.h"
#include "vfio_client.h"
#include "vfio_model.h"

#define PAGE  UINT64_C(4096)
#define PAGES UINT64_C(64)
#define HIGH  UINT64_C(0x100000000)

#define KEPT_BYTES 64u /* of the model, in a stream that is kept as a file */

/* A process. */
struct side {
	struct vfio_model model;
	struct vnic_vfio_server *server;
};

struct fixture {
	struct side sides[2];
	struct side *now; /* has the client */
	struct vfio_client client;
	int file, eventfd;
	uint8_t *bytes;
};

/* --- Two processes, and the client of one */

static void pump(void *ctx)
{
	assert_true(vnic_vfio_server_event(((struct fixture *)ctx)->now->server) >= 0);
}

static void open_side(struct side *side, uint16_t device)
{
	vfio_model_open(&side->model, device, true, &side->server);
}

static void close_side(struct side *side)
{
	vnic_vfio_server_destroy(side->server);
	vnic_guest_memory_destroy(side->model.memory);
}

static int setup(void **state)
{
	static struct fixture f;
	int ends[2];

	open_side(&f.sides[0], 0x07b0);
	open_side(&f.sides[1], 0x07b0);
	f.now = &f.sides[0];
	f.file = memfd_create("guest", MFD_CLOEXEC);
	f.eventfd = eventfd(0, EFD_NONBLOCK);
	assert_int_equal(ftruncate(f.file, 2 * PAGES * PAGE), 0);
	f.bytes = mmap(NULL, 2 * PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, f.file, 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(vnic_vfio_server_connect(f.now->server, ends[0]), 0);
	vfio_client_open(&f.client, ends[1], pump, &f);
	/* The upper region begins in the middle of the file, and loses its second quarter. */
	assert_int_equal(vfio_map(&f.client, 0, PAGES * PAGE, f.file, 0), 0);
	assert_int_equal(vfio_map(&f.client, HIGH, PAGES * PAGE, f.file, PAGES * PAGE), 0);
	assert_int_equal(vnic_guest_memory_unmap(f.now->model.memory, HIGH + 16 * PAGE, 16 * PAGE),
			 0);
	vfio_set_eventfd(&f.client, 1, f.eventfd);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	close(f->client.socket);
	close_side(&f->sides[0]);
	close_side(&f->sides[1]);
	close(f->file);
	close(f->eventfd);
	munmap(f->bytes, 2 * PAGES * PAGE);
	return 0;
}

static void hand_over(struct side *side, struct vnic_vfio_handover *h)
{
	assert_int_equal(vnic_vfio_server_stop(side->server), 0);
	assert_int_equal(vnic_vfio_server_hand_over(side->server, h), 0);
	/* What another process receives are descriptors of its own. */
	for (uint32_t i = 0; i < h->n_fds; i++)
		h->fds[i] = dup(h->fds[i]);
}

static void drop(struct vnic_vfio_handover *h)
{
	for (uint32_t i = 0; i < h->n_fds; i++)
		if (h->fds[i] >= 0)
			close(h->fds[i]);
	free(h->stream);
}

static struct side *other_side(struct fixture *f)
{
	return &f->sides[f->now == f->sides];
}

/* The other side takes over, and the old one ends, without a reset of its model. */
static void take_over(struct fixture *f, struct vnic_vfio_handover *h)
{
	struct side *old = f->now, *new = other_side(f);

	assert_int_equal(vnic_vfio_server_take_over(new->server, h), 0);
	drop(h);
	close_side(old);
	assert_int_equal(old->model.resets, 0);
	assert_int_equal(new->model.starts, 0);
	vnic_vfio_server_resume(new->server);
	assert_int_equal(new->model.starts, 1);
	open_side(old, 0x07b0);
	f->now = new;
}

static void replace(struct fixture *f)
{
	struct vnic_vfio_handover h;

	hand_over(f->now, &h);
	take_over(f, &h);
}

static uint32_t config_command(struct fixture *f)
{
	return vfio_read(&f->client, VFIO_PCI_CONFIG_REGION_INDEX, PCI_COMMAND) & 0xffff;
}

/* The client's memory, and the hole in it. */
static void expect_client_memory(struct fixture *f)
{
	struct vnic_guest_memory *memory = f->now->model.memory;

	f->bytes[5 * PAGE] = 1;
	f->bytes[(PAGES + 40) * PAGE] = 2;
	assert_int_equal(*(uint8_t *)vnic_guest_memory_range(memory, 5 * PAGE, 1, true), 1);
	assert_int_equal(*(uint8_t *)vnic_guest_memory_range(memory, HIGH + 40 * PAGE, 1, true), 2);
	assert_null(vnic_guest_memory_range(memory, HIGH + 20 * PAGE, 1, false));
}

static int set_masked(struct fixture *f, bool masked)
{
	const uint32_t body[5] = {20, 1 | (masked ? 8 : 16), 2, 1, 1};

	return vfio_ask(&f->client, 8, body, sizeof(body), -1);
}

/* --- Tests */

static void test_ten_handovers_keep_registers_and_memory(void **state)
{
	struct fixture *f = *state;
	eventfd_t count;

	assert_int_equal(vfio_write(&f->client, VFIO_PCI_CONFIG_REGION_INDEX, PCI_COMMAND, 6), 0);
	for (uint32_t i = 0; i < 10; i++) {
		assert_int_equal(vfio_write(&f->client, 0, 4 * i, 50 + i), 0);
		replace(f);
		for (uint32_t j = 0; j <= i; j++)
			assert_int_equal(vfio_read(&f->client, 0, 4 * j), 50 + j);
		assert_int_equal(config_command(f), 6);
		assert_int_equal(f->now->model.added, 3);
		vnic_vfio_server_interrupt(f->now->server, 1);
		assert_int_equal(eventfd_read(f->eventfd, &count), 0);
	}
	expect_client_memory(f);
	/* The client goes on to change its memory. */
	assert_int_equal(vfio_map(&f->client, HIGH + 16 * PAGE, PAGE, f->file, 0), 0);
}

/* A message that waits in the socket is for the next process. */
static void test_waiting_message_goes_to_the_next_process(void **state)
{
	struct fixture *f = *state;
	const struct {
		uint16_t id, command;
		uint32_t size, flags, error;
		uint64_t offset;
		uint32_t region, count, value;
	} __attribute__((packed)) message = {100, 10, sizeof(message), 0, 0, 8, 0, 4, 77};

	assert_int_equal(send(f->client.socket, &message, sizeof(message), 0), sizeof(message));
	replace(f);
	pump(f);
	assert_int_equal(recv(f->client.socket, f->client.body, 100, MSG_DONTWAIT), 16 + 16);
	assert_int_equal(vfio_read(&f->client, 0, 8), 77);
}

static void test_masked_pending_interrupt_survives_a_handover(void **state)
{
	struct fixture *f = *state;
	eventfd_t count;

	assert_int_equal(set_masked(f, true), 0);
	vnic_vfio_server_interrupt(f->now->server, 1);
	replace(f);
	vnic_vfio_server_interrupt(f->now->server, 1);
	assert_int_equal(eventfd_read(f->eventfd, &count), -1);
	assert_int_equal(set_masked(f, false), 0);
	assert_int_equal(eventfd_read(f->eventfd, &count), 0);
}

static void connect_next_client(struct fixture *f)
{
	int ends[2];

	assert_int_equal(vnic_vfio_server_fd(f->now->server), -1);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(vnic_vfio_server_connect(f->now->server, ends[0]), 0);
	vfio_client_open(&f->client, ends[1], pump, f);
	assert_int_equal(vfio_write(&f->client, 0, 8, 5), 0);
}

static void test_handover_without_client_accepts_the_next(void **state)
{
	struct fixture *f = *state;

	close(f->client.socket);
	assert_int_equal(vnic_vfio_server_event(f->now->server), -ECONNRESET);
	f->now->model.resets = 0;
	replace(f);
	connect_next_client(f);
}

static void forget_client(struct fixture *f)
{
	close(f->client.socket);
	close_side(f->now);
	open_side(f->now, 0x07b0);
}

/* A hypervisor uses the NIC only, or has not started yet. */
static void test_handover_before_the_first_client_accepts_it(void **state)
{
	struct fixture *f = *state;

	forget_client(f);
	replace(f);
	connect_next_client(f);
	assert_int_equal(vfio_read(&f->client, VFIO_PCI_CONFIG_REGION_INDEX, PCI_VENDOR_ID),
			 0x07b015ad);
}

/* A stream of an earlier urxe, whose servers had no configuration space before a first client. */
static void test_handover_of_zeros_accepts_the_first_client(void **state)
{
	struct fixture *f = *state;
	struct vnic_vfio_handover h;

	forget_client(f);
	hand_over(f->now, &h);
	free(h.stream);
	h.stream = kept_stream_of_version(VFIO_KEPT_STREAMS, 1, "server_without_client", &h.length);
	other_side(f)->model.saved = KEPT_BYTES;
	take_over(f, &h);
	connect_next_client(f);
	assert_int_equal(vfio_read(&f->client, VFIO_PCI_CONFIG_REGION_INDEX, PCI_VENDOR_ID),
			 0x07b015ad);
}

static void test_handover_waits_for_whole_messages_and_copies(void **state)
{
	struct fixture *f = *state;
	struct vnic_vfio_handover h;
	const uint32_t part = 0;

	/* Half a header. */
	assert_int_equal(send(f->client.socket, &part, sizeof(part), 0), sizeof(part));
	pump(f);
	assert_int_equal(vnic_vfio_server_stop(f->now->server), -EAGAIN);
	assert_int_equal(f->now->model.stops, 0);
	vnic_vfio_server_disconnect(f->now->server);
	/* Peers still copy. */
	assert_int_equal(vnic_vfio_server_stop(f->now->server), 0);
	f->now->model.busy = true;
	assert_int_equal(vnic_vfio_server_hand_over(f->now->server, &h), -EAGAIN);
	f->now->model.busy = false;
	f->now->model.save_error = -ENOMEM;
	assert_int_equal(vnic_vfio_server_hand_over(f->now->server, &h), -ENOMEM);
	vnic_vfio_server_resume(f->now->server);
	assert_int_equal(f->now->model.starts, 1);
}

static void test_handover_is_busy_during_a_migration(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(vfio_start_log(&f->client), 0);
	assert_int_equal(vnic_vfio_server_stop(f->now->server), -EBUSY);
	assert_int_equal(vfio_stop_log(&f->client), 0);
	assert_int_equal(vfio_set_state(&f->client, VFIO_STATE_PRE_COPY), 0);
	assert_int_equal(vnic_vfio_server_stop(f->now->server), -EBUSY);
	assert_int_equal(vfio_set_state(&f->client, VFIO_STATE_RUNNING), 0);
	replace(f);
}

/* Another process that gives up leaves the client to the first one. */
static void test_abandoned_handover_leaves_the_client(void **state)
{
	struct fixture *f = *state;
	struct side *other = &f->sides[1];
	struct vnic_vfio_handover h;

	assert_int_equal(vfio_write(&f->client, 0, 8, 3), 0);
	hand_over(f->now, &h);
	other->model.restore_error = -EFAULT;
	assert_int_equal(vnic_vfio_server_take_over(other->server, &h), -EFAULT);
	drop(&h);
	close_side(other);
	assert_int_equal(other->model.resets + other->model.removed, 0);
	open_side(other, 0x07b0);
	vnic_vfio_server_resume(f->now->server);
	assert_int_equal(vfio_read(&f->client, 0, 8), 3);
	replace(f);
	assert_int_equal(vfio_read(&f->client, 0, 8), 3);
}

static void refuse(struct fixture *f, struct vnic_vfio_handover *h, int error)
{
	struct side *other = &f->sides[1];
	struct vnic_vfio_handover copy = *h;

	for (uint32_t i = 0; i < h->n_fds; i++)
		copy.fds[i] = dup(h->fds[i]);
	assert_int_equal(vnic_vfio_server_take_over(other->server, &copy), error);
	copy.stream = NULL;
	drop(&copy);
	close_side(other);
	open_side(other, 0x07b0);
}

static void test_handover_with_wrong_descriptors_is_refused(void **state)
{
	struct fixture *f = *state;
	struct vnic_vfio_handover h;
	int fd;

	hand_over(f->now, &h);
	/* The connection, an eventfd, three regions. */
	assert_int_equal(h.n_fds, 5);
	h.n_fds--;
	refuse(f, &h, -EBADMSG);
	h.fds[h.n_fds + 1] = h.fds[0];
	h.n_fds += 2;
	refuse(f, &h, -EBADMSG);
	h.n_fds--;
	/* An eventfd in the place of the socket, and a socket in that of a file. */
	fd = h.fds[0];
	h.fds[0] = h.fds[1];
	refuse(f, &h, -EBADMSG);
	h.fds[0] = fd;
	fd = h.fds[2];
	h.fds[2] = h.fds[0];
	refuse(f, &h, -EOPNOTSUPP);
	h.fds[2] = fd;
	h.stream[h.length / 2] ^= 1;
	refuse(f, &h, -EBADMSG);
	h.stream[h.length / 2] ^= 1;
	h.length--;
	refuse(f, &h, -EBADMSG);
	h.length++;
	close_side(&f->sides[1]);
	open_side(&f->sides[1], 0x0820);
	refuse(f, &h, -EINVAL);
	drop(&h);
	vnic_vfio_server_resume(f->now->server);
}

/* --- Streams of earlier versions, kept as files: vVERSION/server */

/* A driver has enabled the function, and an interrupt is pending, which the client has masked. */
static void build_kept_state(struct fixture *f)
{
	f->now->model.saved = KEPT_BYTES;
	assert_int_equal(vfio_write(&f->client, VFIO_PCI_CONFIG_REGION_INDEX, PCI_COMMAND, 6), 0);
	for (uint32_t i = 0; i < KEPT_BYTES; i += 4)
		assert_int_equal(vfio_write(&f->client, 0, i, 30 + i), 0);
	assert_int_equal(set_masked(f, true), 0);
	vnic_vfio_server_interrupt(f->now->server, 1);
}

static void expect_kept_state(struct fixture *f)
{
	eventfd_t count;

	assert_int_equal(config_command(f), 6);
	for (uint32_t i = 0; i < KEPT_BYTES; i += 4)
		assert_int_equal(vfio_read(&f->client, 0, i), 30 + i);
	expect_client_memory(f);
	assert_int_equal(eventfd_read(f->eventfd, &count), -1);
	assert_int_equal(set_masked(f, false), 0);
	assert_int_equal(eventfd_read(f->eventfd, &count), 0);
	assert_int_equal(count, 1);
}

/* The descriptors are those of a server that is stopped now. */
static void test_handover_streams_of_each_version_are_read(void **state)
{
	struct fixture *f = *state;
	struct vnic_vfio_handover h;

	f->now->model.saved = KEPT_BYTES;
	for (uint32_t version = 1, newest = 1; version <= newest; version++) {
		hand_over(f->now, &h);
		newest = kept_stream_version(h.stream);
		free(h.stream);
		h.stream = kept_stream_of_version(VFIO_KEPT_STREAMS, version, "server", &h.length);
		other_side(f)->model.saved = KEPT_BYTES;
		take_over(f, &h);
		expect_kept_state(f);
	}
}

static int write_stream(const char *path)
{
	struct vnic_vfio_handover h;
	struct fixture *f;
	void *state;

	setup(&state);
	f = state;
	build_kept_state(f);
	hand_over(f->now, &h);
	kept_stream_write(path, h.stream, h.length);
	drop(&h);
	return teardown(&state);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(test_ten_handovers_keep_registers_and_memory),
		TEST(test_waiting_message_goes_to_the_next_process),
		TEST(test_masked_pending_interrupt_survives_a_handover),
		TEST(test_handover_without_client_accepts_the_next),
		TEST(test_handover_before_the_first_client_accepts_it),
		TEST(test_handover_of_zeros_accepts_the_first_client),
		TEST(test_handover_waits_for_whole_messages_and_copies),
		TEST(test_handover_is_busy_during_a_migration),
		TEST(test_abandoned_handover_leaves_the_client),
		TEST(test_handover_with_wrong_descriptors_is_refused),
		TEST(test_handover_streams_of_each_version_are_read),
#undef TEST
	};

	if (argc == 3 && !strcmp(argv[1], "--write"))
		return write_stream(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
