/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The migration of a function by the vfio-user protocol.
 *
 * `test_vnic_vfio_migration --write FILE` writes a stream of the current version, to be kept.
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

#include <vnic/dirty_log.h>
#include <vnic/vfio_server.h>

#include "kept_stream.h"
#include "vfio_client.h"
#include "vfio_model.h"

#define PAGE  UINT64_C(4096)
#define PAGES UINT64_C(64)
#define HIGH  UINT64_C(0x100000000)
#define BAR0  0
#define GET   (1u << 16)
#define SET   (1u << 17)
#define PROBE (1u << 18)

#define KEPT_BYTES 64u /* of the model, in a stream that is kept as a file */

struct side {
	struct vfio_model model;
	struct vnic_vfio_server *server;
	struct vfio_client client;
	int file;
};

struct fixture {
	struct side source, target;
};

/* --- Two servers and their clients */

static void pump(void *ctx)
{
	vnic_vfio_server_event(((struct side *)ctx)->server);
}

static void open_side(struct side *side, uint16_t device, bool migrates)
{
	int ends[2];

	vfio_model_open(&side->model, device, migrates, &side->server);
	side->file = memfd_create("guest", MFD_CLOEXEC);
	assert_int_equal(ftruncate(side->file, 2 * PAGES * PAGE), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(vnic_vfio_server_connect(side->server, ends[0]), 0);
	vfio_client_open(&side->client, ends[1], pump, side);
	assert_int_equal(vfio_map(&side->client, 0, PAGES * PAGE, side->file, 0), 0);
	assert_int_equal(vfio_map(&side->client, HIGH, PAGES * PAGE, side->file, PAGES * PAGE), 0);
}

static void close_side(struct side *side)
{
	close(side->client.socket);
	vnic_vfio_server_destroy(side->server);
	vnic_guest_memory_destroy(side->model.memory);
	close(side->file);
}

static int setup(void **state)
{
	static struct fixture f;

	open_side(&f.source, 0x07b0, true);
	open_side(&f.target, 0x07b0, true);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	close_side(&f->source);
	close_side(&f->target);
	return 0;
}

/* --- States */

static void go(struct side *side, enum vfio_state state)
{
	assert_int_equal(vfio_set_state(&side->client, state), 0);
	assert_int_equal(vfio_get_state(&side->client), state);
}

/* The number of arcs of linux/vfio.h from one state to another; 0: the way is forbidden. */
static const uint8_t arcs[VFIO_STATES][VFIO_STATES] = {
	[VFIO_STATE_STOP] = {[VFIO_STATE_RUNNING] = 1,
			     [VFIO_STATE_STOP_COPY] = 1,
			     [VFIO_STATE_RESUMING] = 1,
			     [VFIO_STATE_PRE_COPY] = 2},
	[VFIO_STATE_RUNNING] = {[VFIO_STATE_STOP] = 1,
				[VFIO_STATE_STOP_COPY] = 2,
				[VFIO_STATE_RESUMING] = 2,
				[VFIO_STATE_PRE_COPY] = 1},
	[VFIO_STATE_STOP_COPY] =
		{[VFIO_STATE_STOP] = 1, [VFIO_STATE_RUNNING] = 2, [VFIO_STATE_RESUMING] = 2},
	[VFIO_STATE_PRE_COPY] = {[VFIO_STATE_STOP] = 2,
				 [VFIO_STATE_RUNNING] = 1,
				 [VFIO_STATE_STOP_COPY] = 1,
				 [VFIO_STATE_RESUMING] = 3},
};

static bool is_stopped(enum vfio_state state)
{
	return state != VFIO_STATE_RUNNING && state != VFIO_STATE_PRE_COPY;
}

/* From RESUMING all ways need a stream: test_migrated_function_has_the_same_state has them. */
static void test_only_valid_state_transitions_are_accepted(void **state)
{
	static const enum vfio_state all[] = {VFIO_STATE_STOP, VFIO_STATE_RUNNING,
					      VFIO_STATE_STOP_COPY, VFIO_STATE_PRE_COPY,
					      VFIO_STATE_RESUMING};
	struct side *side = &((struct fixture *)*state)->source;

	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 5; j++) {
			vfio_reset(&side->client);
			go(side, all[i]);
			if (all[i] == all[j] || arcs[all[i]][all[j]]) {
				go(side, all[j]);
				assert_int_equal(side->model.stopped, is_stopped(all[j]));
			} else {
				assert_int_equal(vfio_set_state(&side->client, all[j]), EINVAL);
				assert_int_equal(vfio_get_state(&side->client), all[i]);
			}
		}
	vfio_reset(&side->client);
	assert_false(side->model.stopped);
}

static void test_unknown_migration_states_are_refused(void **state)
{
	static const uint32_t wrong[] = {VFIO_STATE_ERROR, 5, 7, 8, 1000, UINT32_MAX};
	struct side *side = &((struct fixture *)*state)->source;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(vfio_set_state(&side->client, (enum vfio_state)wrong[i]), EINVAL);
	assert_int_equal(vfio_get_state(&side->client), VFIO_STATE_RUNNING);
}

static void test_feature_probes_name_the_migration_features(void **state)
{
	struct fixture *f = *state;
	struct vfio_client *c = &f->source.client;
	const uint64_t control[2] = {PAGE, 0};
	struct side plain;
	uint64_t flags;

	assert_int_equal(vfio_feature(c, GET | 1, NULL, 0, 0), 0);
	memcpy(&flags, c->body + 8, sizeof(flags));
	assert_int_equal(c->size, 16);
	assert_int_equal(flags, 1 | 4); /* STOP_COPY, PRE_COPY */
	for (uint32_t feature = 0; feature < 12; feature++) {
		const bool get = feature == 1 || feature == 2 || feature == 8;
		const bool set = feature == 2 || feature == 6 || feature == 7;

		assert_int_equal(vfio_feature(c, PROBE | GET | feature, NULL, 0, 0),
				 get ? 0 : ENOTTY);
		assert_int_equal(vfio_feature(c, PROBE | SET | feature, NULL, 0, 0),
				 set ? 0 : ENOTTY);
		assert_int_equal(vfio_feature(c, PROBE | GET | SET | feature, NULL, 0, 0),
				 get && set ? 0 : ENOTTY);
		assert_int_equal(vfio_feature(c, PROBE | feature, NULL, 0, 0),
				 get || set ? 0 : ENOTTY);
	}
	/* Both methods, none, one that does not exist, unknown flags, a reply that is too long. */
	assert_int_equal(vfio_feature(c, GET | SET | 2, NULL, 0, 0), EINVAL);
	assert_int_equal(vfio_feature(c, 2, NULL, 0, 0), EINVAL);
	assert_int_equal(vfio_feature(c, SET | 1, NULL, 0, 0), ENOTTY);
	assert_int_equal(vfio_feature(c, GET | 6, control, sizeof(control), 0), ENOTTY);
	assert_int_equal(vfio_feature(c, GET | 1u << 20 | 1, NULL, 0, 0), EINVAL);
	assert_int_equal(vfio_feature(c, GET | 1, NULL, 0, 15), EINVAL);
	assert_int_equal(vfio_feature(c, GET | 1, NULL, 0, 7), EINVAL);
	assert_int_equal(vfio_feature(c, SET | 2, control, 4, 0), EINVAL);
	/* A function without a migration. */
	open_side(&plain, 0x07b0, false);
	assert_int_equal(vfio_feature(&plain.client, GET | 1, NULL, 0, 0), ENOTTY);
	assert_int_equal(vfio_feature(&plain.client, PROBE | GET | 1, NULL, 0, 0), ENOTTY);
	assert_int_equal(vfio_set_state(&plain.client, VFIO_STATE_STOP), ENOTTY);
	vfio_reset(&plain.client);
	close_side(&plain);
}

/* --- The stream */

static void fill(struct side *side)
{
	for (uint32_t i = 0; i < sizeof(side->model.state); i++)
		side->model.state[i] = (uint8_t)(i * 7 + i / 251);
}

static void read_stream(struct side *side, uint8_t **stream, size_t *length)
{
	*stream = NULL;
	*length = 0;
	vfio_read_stream(&side->client, stream, length);
}

static void test_migrated_function_has_the_same_state(void **state)
{
	struct fixture *f = *state;
	struct side *from = &f->source, *to = &f->target;
	uint8_t *stream = NULL;
	size_t length = 0;

	fill(from);
	/* Memory and bus mastering: a part of the configuration space that the client changes. */
	assert_int_equal(vfio_write(&from->client, VFIO_PCI_CONFIG_REGION_INDEX, PCI_COMMAND, 6),
			 0);
	go(from, VFIO_STATE_PRE_COPY);
	vfio_read_stream(&from->client, &stream, &length);
	assert_int_equal(length, 0);
	assert_int_equal(vfio_write(&from->client, BAR0, 8, 99), 0);
	go(from, VFIO_STATE_STOP_COPY);
	vfio_read_stream(&from->client, &stream, &length);
	assert_true(length > sizeof(from->model.state));
	go(to, VFIO_STATE_RESUMING);
	assert_int_equal(vfio_write_stream(&to->client, stream, length), 0);
	go(to, VFIO_STATE_STOP);
	assert_memory_equal(to->model.state, from->model.state, sizeof(to->model.state));
	assert_int_equal(to->model.state[8], 99);
	assert_int_equal(to->model.starts, 0);
	go(to, VFIO_STATE_RUNNING);
	assert_int_equal(to->model.starts, 1);
	assert_int_equal(vfio_read(&to->client, VFIO_PCI_CONFIG_REGION_INDEX, PCI_COMMAND) & 0xffff,
			 6);
	go(from, VFIO_STATE_STOP);
	assert_int_equal(from->model.starts, 0);
	free(stream);
}

/* The client gives up in each state, and the source goes on. */
static void test_aborted_migration_leaves_a_running_source(void **state)
{
	static const enum vfio_state last[] = {VFIO_STATE_PRE_COPY, VFIO_STATE_STOP_COPY,
					       VFIO_STATE_STOP};
	struct side *side = &((struct fixture *)*state)->source;
	uint8_t *stream;
	size_t length, whole = 0;

	fill(side);
	for (int i = 0; i < 3; i++) {
		go(side, last[i]);
		if (last[i] == VFIO_STATE_STOP_COPY)
			read_stream(side, &stream, &whole);
		else
			stream = NULL;
		go(side, VFIO_STATE_RUNNING);
		free(stream);
		assert_int_equal(vfio_write(&side->client, BAR0, 8, (uint32_t)i), 0);
		assert_int_equal(side->model.state[8], i);
	}
	/* A second migration has a stream from the beginning. */
	go(side, VFIO_STATE_STOP_COPY);
	read_stream(side, &stream, &length);
	assert_int_equal(length, whole);
	free(stream);
	go(side, VFIO_STATE_RUNNING);
	assert_int_equal(side->model.resets, 0);
}

static void test_stopped_function_refuses_register_writes(void **state)
{
	struct side *side = &((struct fixture *)*state)->source;

	side->model.state[12] = 5;
	go(side, VFIO_STATE_STOP);
	assert_int_equal(vfio_write(&side->client, BAR0, 8, 1), EBUSY);
	assert_int_equal(vfio_read(&side->client, BAR0, 12), 5);
	assert_int_equal(side->model.writes, 0);
	/* The sizes of the BARs may be asked for, without a reset. */
	assert_int_equal(vfio_write(&side->client, VFIO_PCI_CONFIG_REGION_INDEX, PCI_BASE_ADDRESS_1,
				    UINT32_MAX),
			 0);
	assert_int_equal(side->model.resets, 0);
	go(side, VFIO_STATE_RUNNING);
	assert_int_equal(vfio_write(&side->client, BAR0, 8, 1), 0);
}

static void test_data_is_refused_in_wrong_states(void **state)
{
	static const enum vfio_state all[] = {VFIO_STATE_RUNNING, VFIO_STATE_STOP,
					      VFIO_STATE_STOP_COPY, VFIO_STATE_PRE_COPY,
					      VFIO_STATE_RESUMING};
	struct side *side = &((struct fixture *)*state)->source;
	struct vfio_client *c = &side->client;
	const uint32_t read[2] = {8 + 100, 100}, long_read[2] = {8 + 5000, 5000};
	const uint32_t write[3] = {8, 4, 7}, wrong_write[3] = {8, 5, 7};

	for (int i = 0; i < 5; i++) {
		const bool reads = all[i] == VFIO_STATE_STOP_COPY || all[i] == VFIO_STATE_PRE_COPY;

		vfio_reset(c);
		go(side, all[i]);
		assert_int_equal(vfio_ask(c, 17, read, sizeof(read), -1), reads ? 0 : EINVAL);
		assert_int_equal(vfio_ask(c, 17, long_read, sizeof(read), -1), EINVAL);
		assert_int_equal(vfio_ask(c, 18, write, sizeof(write), -1),
				 all[i] == VFIO_STATE_RESUMING ? 0 : EINVAL);
		assert_int_equal(vfio_ask(c, 18, wrong_write, sizeof(write), -1), EINVAL);
	}
}

/* Each error ends in the state ERROR, from which only a reset leads. */
static void refuse(struct side *side, const uint8_t *stream, size_t length, int error)
{
	side->model.refused = 0;
	go(side, VFIO_STATE_RESUMING);
	assert_int_equal(vfio_write_stream(&side->client, stream, length), 0);
	assert_int_equal(vfio_set_state(&side->client, VFIO_STATE_RUNNING), error);
	assert_int_equal(side->model.refused, -error);
	assert_int_equal(vfio_get_state(&side->client), VFIO_STATE_ERROR);
	for (uint32_t to = 0; to < VFIO_STATES; to++)
		assert_int_equal(vfio_set_state(&side->client, (enum vfio_state)to), EINVAL);
	vfio_reset(&side->client);
	assert_int_equal(vfio_get_state(&side->client), VFIO_STATE_RUNNING);
	assert_false(side->model.stopped);
}

static void test_cut_damaged_and_foreign_streams_are_refused(void **state)
{
	struct fixture *f = *state;
	struct side *from = &f->source, *to = &f->target;
	struct side other;
	uint8_t *stream;
	size_t length;

	fill(from);
	go(from, VFIO_STATE_STOP_COPY);
	read_stream(from, &stream, &length);
	refuse(to, stream, 0, EBADMSG);
	refuse(to, stream, 10, EBADMSG);
	refuse(to, stream, length - 1, EBADMSG);
	stream[length / 2] ^= 1;
	refuse(to, stream, length, EBADMSG);
	stream[length / 2] ^= 1;
	to->model.restore_error = -EADDRINUSE;
	refuse(to, stream, length, EADDRINUSE);
	to->model.restore_error = 0;
	/* A function of another kind. */
	open_side(&other, 0x0820, true);
	refuse(&other, stream, length, EINVAL);
	close_side(&other);
	go(to, VFIO_STATE_RESUMING);
	assert_int_equal(vfio_write_stream(&to->client, stream, length), 0);
	go(to, VFIO_STATE_RUNNING);
	free(stream);
}

/* A function that cannot be saved stays stopped, and goes on. */
static void test_function_that_cannot_be_saved_goes_on(void **state)
{
	struct side *side = &((struct fixture *)*state)->source;

	side->model.save_error = -ENOMEM;
	assert_int_equal(vfio_set_state(&side->client, VFIO_STATE_STOP_COPY), ENOMEM);
	assert_int_equal(vfio_get_state(&side->client), VFIO_STATE_STOP);
	go(side, VFIO_STATE_RUNNING);
	assert_int_equal(side->model.starts, 1);
}

/* While a peer copies, neither the reply comes nor is the state saved; model_save checks that. */
static void test_stop_waits_for_copies_of_peers(void **state)
{
	struct side *side = &((struct fixture *)*state)->source;
	const uint32_t data[4] = {16, SET | 2, VFIO_STATE_STOP_COPY, 0};
	const uint32_t header[4] = {16u << 16 | 100, 16 + sizeof(data), 0, 0};
	char byte;

	side->model.busy = true;
	assert_int_equal(send(side->client.socket, header, sizeof(header), 0), sizeof(header));
	assert_int_equal(send(side->client.socket, data, sizeof(data), 0), sizeof(data));
	pump(side);
	assert_true(vnic_vfio_server_is_held(side->server));
	assert_int_equal(side->model.stops, 1);
	assert_int_equal(recv(side->client.socket, &byte, 1, MSG_DONTWAIT), -1);
	side->model.busy = false;
	pump(side);
	assert_int_equal(recv(side->client.socket, side->client.body, 100, MSG_DONTWAIT), 16 + 16);
	assert_int_equal(vfio_get_state(&side->client), VFIO_STATE_STOP_COPY);
}

/* An interrupt that nobody could get before the migration is raised at the target. */
static void test_pending_interrupt_is_raised_at_the_target(void **state)
{
	struct fixture *f = *state;
	struct side *from = &f->source, *to = &f->target;
	int fd = eventfd(0, EFD_NONBLOCK);
	eventfd_t count;
	uint8_t *stream;
	size_t length;

	vnic_vfio_server_interrupt(from->server, 2);
	go(from, VFIO_STATE_STOP_COPY);
	read_stream(from, &stream, &length);
	vfio_set_eventfd(&to->client, 2, fd);
	go(to, VFIO_STATE_RESUMING);
	assert_int_equal(vfio_write_stream(&to->client, stream, length), 0);
	go(to, VFIO_STATE_STOP);
	assert_int_equal(eventfd_read(fd, &count), -1);
	go(to, VFIO_STATE_RUNNING);
	assert_int_equal(eventfd_read(fd, &count), 0);
	assert_int_equal(count, 1);
	close(fd);
	free(stream);
}

/* A client that ends in the middle leaves a function that works for the next one. */
static void test_disconnection_ends_a_migration(void **state)
{
	struct side *side = &((struct fixture *)*state)->source;
	int ends[2];

	go(side, VFIO_STATE_STOP_COPY);
	assert_int_equal(vfio_start_log(&side->client), 0);
	vfio_client_close(&side->client);
	assert_false(side->model.stopped || side->model.logging);
	assert_false(vnic_guest_memory_log(side->model.memory)->on);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(vnic_vfio_server_connect(side->server, ends[0]), 0);
	vfio_client_open(&side->client, ends[1], pump, side);
	assert_int_equal(vfio_get_state(&side->client), VFIO_STATE_RUNNING);
	assert_int_equal(vfio_write(&side->client, BAR0, 0, 1), 0);
}

/* --- The log */

static void write_guest(struct side *side, uint64_t addr, uint64_t size)
{
	void *bytes = vnic_guest_memory_range(side->model.memory, addr, size, true);

	assert_non_null(bytes);
	memset(bytes, 1, size);
	vnic_dirty_mark(vnic_guest_memory_log(side->model.memory), bytes, size);
}

static uint64_t take_word(struct side *side, uint64_t addr)
{
	uint64_t word = 0;

	vfio_take_log(&side->client, addr, PAGES * PAGE, &word);
	return word;
}

static void test_dirty_log_reports_written_pages_once(void **state)
{
	struct side *side = &((struct fixture *)*state)->source;

	write_guest(side, 5 * PAGE, 1);
	assert_int_equal(vfio_start_log(&side->client), 0);
	assert_true(side->model.logging);
	assert_int_equal(take_word(side, 0), 0);
	write_guest(side, 3 * PAGE + 4095, 2);
	write_guest(side, HIGH + 63 * PAGE, PAGE);
	assert_int_equal(take_word(side, 0), 3u << 3);
	assert_int_equal(take_word(side, 0), 0);
	assert_int_equal(take_word(side, HIGH), UINT64_C(1) << 63);
	assert_int_equal(take_word(side, HIGH), 0);
	assert_int_equal(side->model.marks, 5);
	write_guest(side, HIGH, PAGES * PAGE);
	assert_int_equal(take_word(side, HIGH), UINT64_MAX);
	/* A second start is refused, a stop forgets, and a report needs a log. */
	assert_int_equal(vfio_start_log(&side->client), EINVAL);
	write_guest(side, 0, 1);
	assert_int_equal(vfio_stop_log(&side->client), 0);
	assert_false(side->model.logging);
	assert_int_equal(vfio_stop_log(&side->client), EINVAL);
	assert_int_equal(
		vfio_feature(&side->client, GET | 8, (uint64_t[]){0, PAGES * PAGE, PAGE}, 24, 0),
		EINVAL);
	assert_int_equal(vfio_start_log(&side->client), 0);
	assert_int_equal(take_word(side, 0), 0);
}

static void test_reset_keeps_the_dirty_log(void **state)
{
	struct side *side = &((struct fixture *)*state)->source;

	assert_int_equal(vfio_start_log(&side->client), 0);
	write_guest(side, 3 * PAGE, 1);
	vfio_reset(&side->client);
	assert_true(side->model.logging);
	assert_int_equal(vfio_start_log(&side->client), EINVAL);
	write_guest(side, HIGH + 5 * PAGE, 1);
	assert_int_equal(take_word(side, 0), 1u << 3);
	assert_int_equal(take_word(side, HIGH), 1u << 5);
	assert_int_equal(vfio_stop_log(&side->client), 0);
	assert_false(side->model.logging);
}

/* Copies pages of the memory's file; bit n of the word stands for page first + n. */
static void copy_pages(const struct side *from, const struct side *to, uint64_t first,
		       uint64_t word)
{
	for (; word; word &= word - 1) {
		const off_t at = (off_t)((first + (uint64_t)__builtin_ctzll(word)) * PAGE);
		uint8_t page[PAGE];

		assert_int_equal(pread(from->file, page, PAGE, at), PAGE);
		assert_int_equal(pwrite(to->file, page, PAGE, at), PAGE);
	}
}

static void copy_written_pages(struct side *from, struct side *to)
{
	copy_pages(from, to, 0, take_word(from, 0));
	copy_pages(from, to, PAGES, take_word(from, HIGH));
}

static void assert_same_memory(struct side *a, struct side *b)
{
	static const uint64_t addresses[] = {0, HIGH};

	for (int i = 0; i < 2; i++)
		assert_memory_equal(
			vnic_guest_memory_range(a->model.memory, addresses[i], PAGES * PAGE, true),
			vnic_guest_memory_range(b->model.memory, addresses[i], PAGES * PAGE, true),
			PAGES * PAGE);
}

/* The function writes to memory before the reset, after it, and after the last round of copies. */
static void test_machine_that_reboots_during_pre_copy_is_migrated(void **state)
{
	struct fixture *f = *state;
	struct side *from = &f->source, *to = &f->target;
	uint8_t *stream;
	size_t length;

	fill(from);
	assert_int_equal(vfio_start_log(&from->client), 0);
	go(from, VFIO_STATE_PRE_COPY);
	write_guest(from, 3 * PAGE, 1);
	vfio_reset(&from->client);
	assert_int_equal(vfio_get_state(&from->client), VFIO_STATE_RUNNING);
	assert_int_equal(vfio_write(&from->client, BAR0, 8, 99), 0);
	write_guest(from, HIGH + 5 * PAGE, 1);
	copy_written_pages(from, to);
	write_guest(from, 7 * PAGE, 1);
	go(from, VFIO_STATE_STOP_COPY);
	copy_written_pages(from, to);
	assert_int_equal(vfio_stop_log(&from->client), 0);
	read_stream(from, &stream, &length);
	go(to, VFIO_STATE_RESUMING);
	assert_int_equal(vfio_write_stream(&to->client, stream, length), 0);
	go(to, VFIO_STATE_RUNNING);
	assert_same_memory(from, to);
	assert_memory_equal(to->model.state, from->model.state, sizeof(to->model.state));
	assert_int_equal(to->model.state[8], 99);
	assert_int_equal(to->model.state[9], 0);
	free(stream);
}

static void test_dirty_log_reports_at_any_page_size(void **state)
{
	struct side *side = &((struct fixture *)*state)->source;
	struct vfio_client *c = &side->client;
	const uint64_t one_range[4] = {65536, 1, 0, PAGES * PAGE};
	uint64_t value;

	assert_int_equal(vfio_feature(c, SET | 6, one_range, sizeof(one_range), 0), 0);
	memcpy(&value, c->body + 8, sizeof(value));
	assert_int_equal(value, PAGE); /* the size that the server has chosen */
	write_guest(side, 5 * PAGE, 1);
	assert_int_equal(vfio_feature(c, GET | 8, (uint64_t[]){0, PAGES * PAGE, 4 * PAGE}, 24, 0),
			 0);
	memcpy(&value, c->body + 8 + 24, sizeof(value));
	assert_int_equal(value, 2);
	write_guest(side, 5 * PAGE, 1);
	assert_int_equal(vfio_feature(c, GET | 8, (uint64_t[]){4 * PAGE, 2 * PAGE, 1024}, 24, 0),
			 0);
	memcpy(&value, c->body + 8 + 24, sizeof(value));
	assert_int_equal(value, 0xf0);
}

static void test_malformed_log_commands_are_refused(void **state)
{
	struct vfio_client *c = &((struct fixture *)*state)->source.client;
	const struct {
		uint64_t control[4];
		uint32_t size;
	} starts[] = {
		{{0, 0}, 16},
		{{4097, 0}, 16},
		{{PAGE, 1}, 16},
		{{PAGE, 0, 0, PAGE}, 32},
		{{PAGE, 2, 0, PAGE}, 32},
		{{PAGE, 1, 0, 0}, 32},
		{{PAGE, 1, UINT64_MAX, 2}, 32},
		{{PAGE, 0}, 15},
	};
	const uint64_t reports[][3] = {
		{0, 0, PAGE},
		{0, PAGE, 0},
		{0, PAGE, 3},
		{UINT64_MAX - 5, PAGE, PAGE},
		{0, UINT64_MAX, PAGE},
		{0, 40000 * PAGE, PAGE}, /* more than a message has room for */
	};

	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++)
		assert_int_equal(vfio_feature(c, SET | 6, starts[i].control, starts[i].size, 0),
				 EINVAL);
	assert_int_equal(vfio_start_log(c), 0);
	for (size_t i = 0; i < sizeof(reports) / sizeof(*reports); i++)
		assert_int_equal(vfio_feature(c, GET | 8, reports[i], 24, 0), EINVAL);
	assert_int_equal(vfio_feature(c, GET | 8, reports[0], 20, 0), EINVAL);
	assert_int_equal(vfio_feature(c, GET | 8, (uint64_t[]){0, PAGE, PAGE}, 24, 8 + 24 + 7),
			 EINVAL);
	assert_int_equal(vfio_feature(c, GET | 8, (uint64_t[]){0, PAGE, PAGE}, 24, 8 + 24 + 8), 0);
	/* Less than the command has. */
	assert_int_equal(vfio_feature(c, GET | 8, (uint64_t[]){0, PAGE, PAGE}, 24, 8), EINVAL);
	assert_int_equal(vfio_feature(c, SET | 7, reports[0], 8, 0), EINVAL);
}

/* --- Streams of earlier versions, kept as files: vVERSION/function */

/* A driver has enabled the function, and waits for an interrupt. */
static void build_kept_state(struct side *side)
{
	fill(side);
	assert_int_equal(vfio_write(&side->client, VFIO_PCI_CONFIG_REGION_INDEX, PCI_COMMAND, 6),
			 0);
	vnic_vfio_server_interrupt(side->server, 2);
	side->model.saved = KEPT_BYTES;
}

static void restore_kept_state(struct side *side, const uint8_t *stream, size_t length)
{
	side->model.saved = KEPT_BYTES;
	go(side, VFIO_STATE_RESUMING);
	assert_int_equal(vfio_write_stream(&side->client, stream, length), 0);
	go(side, VFIO_STATE_RUNNING);
}

static void expect_kept_state(struct side *side, const struct side *expected)
{
	const int fd = eventfd(0, EFD_NONBLOCK);
	eventfd_t count;

	assert_int_equal(
		vfio_read(&side->client, VFIO_PCI_CONFIG_REGION_INDEX, PCI_COMMAND) & 0xffff, 6);
	assert_memory_equal(side->model.state, expected->model.state, KEPT_BYTES);
	vfio_set_eventfd(&side->client, 2, fd);
	assert_int_equal(eventfd_read(fd, &count), 0);
	assert_int_equal(count, 1);
	/* The next version's restored interrupt waits for its own eventfd. */
	vfio_set_eventfd(&side->client, 2, -1);
	close(fd);
}

static void test_migration_streams_of_each_version_are_restored(void **state)
{
	struct fixture *f = *state;
	uint32_t newest;
	uint8_t *stream;
	size_t length;

	build_kept_state(&f->source);
	go(&f->source, VFIO_STATE_STOP_COPY);
	read_stream(&f->source, &stream, &length);
	newest = kept_stream_version(stream);
	free(stream);
	for (uint32_t version = 1; version <= newest; version++) {
		stream = kept_stream_of_version(VFIO_KEPT_STREAMS, version, "function", &length);
		vfio_reset(&f->target.client);
		restore_kept_state(&f->target, stream, length);
		free(stream);
		expect_kept_state(&f->target, &f->source);
	}
}

static int write_stream(const char *path)
{
	struct fixture *f;
	uint8_t *stream;
	size_t length;
	void *state;

	setup(&state);
	f = state;
	build_kept_state(&f->source);
	go(&f->source, VFIO_STATE_STOP_COPY);
	read_stream(&f->source, &stream, &length);
	kept_stream_write(path, stream, length);
	free(stream);
	return teardown(&state);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(test_only_valid_state_transitions_are_accepted),
		TEST(test_unknown_migration_states_are_refused),
		TEST(test_feature_probes_name_the_migration_features),
		TEST(test_migrated_function_has_the_same_state),
		TEST(test_aborted_migration_leaves_a_running_source),
		TEST(test_stopped_function_refuses_register_writes),
		TEST(test_data_is_refused_in_wrong_states),
		TEST(test_cut_damaged_and_foreign_streams_are_refused),
		TEST(test_function_that_cannot_be_saved_goes_on),
		TEST(test_stop_waits_for_copies_of_peers),
		TEST(test_pending_interrupt_is_raised_at_the_target),
		TEST(test_disconnection_ends_a_migration),
		TEST(test_dirty_log_reports_written_pages_once),
		TEST(test_reset_keeps_the_dirty_log),
		TEST(test_machine_that_reboots_during_pre_copy_is_migrated),
		TEST(test_dirty_log_reports_at_any_page_size),
		TEST(test_malformed_log_commands_are_refused),
		TEST(test_migration_streams_of_each_version_are_restored),
#undef TEST
	};

	if (argc == 3 && !strcmp(argv[1], "--write"))
		return write_stream(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
