/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The vfio-user server against a client by hand: the stream of messages, and what is wrong with
 * messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/vfio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vfio_fixture.h"

static void commands_of_wrong_size_are_refused(void **state)
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
static void too_many_descriptors_in_pieces_end_the_connection(void **state)
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

static void message_sent_byte_by_byte_is_answered_once(void **state)
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
static void descriptors_belong_to_their_messages(void **state)
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

static void wrong_posted_write_is_ignored(void **state)
{
	struct fixture *f = *state;
	const struct access_message w = {4096, 0, 4, {1}};
	uint8_t message[64];

	send_bytes(f, message, build(f, message, REGION_WRITE, NO_REPLY, &w, 20), NULL, 0);
	assert_int_equal(vnic_vfio_server_event(f->server), 0);
	assert_false(read_reply(f));
	assert_int_equal(f->writes, 0);
}

static void malformed_headers_end_the_connection(void **state)
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
		f->resets = 0;
	}
}

static void client_ending_in_a_message_leaves_nothing(void **state)
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
	assert_int_equal(ask(f, VERSION, VFIO_OFFER, sizeof(VFIO_OFFER)), 0);
	assert_int_equal(pending(f), 0);
}

static void second_client_is_refused(void **state)
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
static void client_that_reads_no_replies_is_held(void **state)
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

#define TEST(f) cmocka_unit_test_setup_teardown(f, vfio_setup, vfio_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(commands_of_wrong_size_are_refused),
		TEST(unneeded_descriptors_are_closed),
		TEST(too_many_descriptors_end_the_connection),
		TEST(too_many_descriptors_in_pieces_end_the_connection),
		TEST(message_sent_byte_by_byte_is_answered_once),
		TEST(descriptors_belong_to_their_messages),
		TEST(wrong_posted_write_is_ignored),
		TEST(malformed_headers_end_the_connection),
		TEST(client_ending_in_a_message_leaves_nothing),
		TEST(second_client_is_refused),
		TEST(client_that_reads_no_replies_is_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
