/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The capture ring between the daemon and urxe capture: two mappings of one memory. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/capture_ring.h"

#define LONGEST 9018

static struct capture_writer writer;
static struct capture_reader reader;
static uint8_t frame[LONGEST];

static int setup(void **state)
{
	int fd = capture_writer_open(&writer), rc;

	(void)state;
	if (fd < 0)
		return -1;
	rc = capture_reader_open(&reader, fd);
	close(fd);
	return rc;
}

static int teardown(void **state)
{
	(void)state;
	capture_writer_close(&writer);
	capture_reader_close(&reader);
	return 0;
}

static bool put(uint32_t number, uint32_t len)
{
	struct capture_record record = {.len = len, .time = number, .name = "port"};

	memset(frame, (int)number, len);
	return capture_writer_put(&writer, &record, frame);
}

static void expect(uint32_t number, uint32_t len)
{
	const struct capture_record *record;
	const uint8_t *got;

	memset(frame, (int)number, len);
	assert_int_equal(capture_reader_next(&reader, &record, &got), 1);
	assert_int_equal(record->time, number);
	assert_int_equal(record->len, len);
	assert_string_equal(record->name, "port");
	assert_memory_equal(got, frame, len);
}

static void expect_none(void)
{
	const struct capture_record *record;
	const uint8_t *got;

	assert_int_equal(capture_reader_next(&reader, &record, &got), 0);
}

/* All lengths, so that records end at every distance from the end of the ring. */
static void reader_gets_frames_unchanged(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < 20000; i++) {
		put(2 * i, i * 7 % (LONGEST + 1));
		put(2 * i + 1, i % 64);
		expect(2 * i, i * 7 % (LONGEST + 1));
		expect(2 * i + 1, i % 64);
		expect_none();
	}
	assert_int_equal(capture_reader_lost(&reader), 0);
}

/* Suite sanitize: nothing may be copied from no memory. */
static void frame_without_a_byte_has_no_address(void **state)
{
	struct capture_record record = {.time = 1, .name = "port"};

	(void)state;
	capture_writer_put(&writer, &record, NULL);
	expect(1, 0);
	expect_none();
}

/* Without a reader the ring drops the newest frames; the writer never waits. */
static void full_ring_counts_drops(void **state)
{
	uint32_t i, n = CAPTURE_RING_BYTES / 1000 * 2;

	(void)state;
	for (i = 0; i < n; i++)
		put(i, 1000);
	n -= (uint32_t)capture_reader_lost(&reader);
	assert_true(n > CAPTURE_RING_BYTES / 1200);
	for (i = 0; i < n; i++)
		expect(i, 1000);
	expect_none();
	put(7, 1000);
	expect(7, 1000);
}

static void sleeping_reader_is_woken_once(void **state)
{
	(void)state;
	expect_none();
	assert_false(put(1, 60));
	assert_false(capture_reader_wait(&reader));
	expect(1, 60);
	expect_none();
	assert_true(capture_reader_wait(&reader));
	assert_true(put(2, 60));
	assert_false(put(3, 60));
	expect(2, 60);
	expect(3, 60);
}

/* The reader writes an impossible tail: the writer stops this capture only. */
static void writer_survives_a_hostile_reader(void **state)
{
	static const uint64_t tails[] = {1, CAPTURE_RING_BYTES, UINT64_MAX / 2,
					 UINT64_MAX - CAPTURE_RING_BYTES};
	size_t i;

	for (i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		atomic_store(&reader.ring->tail, tails[i]);
		assert_false(put(1, 60));
		assert_int_equal(writer.head, 0);
		atomic_store(&reader.ring->tail, 0);
		assert_false(put(1, 60));
		assert_int_equal(writer.head, 0);
		assert_int_equal(capture_reader_lost(&reader), 2);
		teardown(state);
		assert_int_equal(setup(state), 0);
	}
}

static void set_head(uint32_t size, uint32_t len, uint64_t head)
{
	struct capture_record record = {.size = size, .len = len};

	memcpy((uint8_t *)reader.ring + CAPTURE_RING_START, &record, sizeof(record));
	atomic_store(&reader.ring->head, head);
}

static void reader_detects_a_broken_ring(void **state)
{
	const uint32_t whole = sizeof(struct capture_record);
	const struct capture_record *record;
	const uint8_t *got;
	const struct {
		uint32_t size, len;
		uint64_t head;
	} rows[] = {{0, 0, whole},         {whole - 8, 0, whole},
		    {whole + 4, 4, 1000},  {whole + 8, 9, 1000},
		    {whole + 8, 8, whole}, {whole, CAPTURE_PAD - 1, 1000},
		    {whole, 0, 4},         {UINT32_MAX & ~7u, 0, UINT64_MAX}};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		set_head(rows[i].size, rows[i].len, rows[i].head);
		assert_int_equal(capture_reader_next(&reader, &record, &got), -EPROTO);
	}
}

/* The daemon of another user may write to the ring while root's reader looks at a frame. */
static void frame_does_not_change_after_the_check(void **state)
{
	const struct capture_record *record;
	const uint8_t *got;

	(void)state;
	put(1, 60);
	assert_int_equal(capture_reader_next(&reader, &record, &got), 1);
	memset((uint8_t *)reader.ring + CAPTURE_RING_START, 0xff, sizeof(*record) + 60);
	assert_int_equal(record->len, 60);
	assert_memory_equal(got, frame, 60);
}

static void memory_of_wrong_size_is_not_mapped(void **state)
{
	int fd = memfd_create("short", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct capture_reader other;

	(void)state;
	assert_int_equal(ftruncate(fd, CAPTURE_RING_SIZE), 0);
	assert_int_equal(capture_reader_open(&other, fd), -EPROTO);
	assert_int_equal(ftruncate(fd, CAPTURE_RING_SIZE - 1), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	assert_int_equal(capture_reader_open(&other, fd), -EPROTO);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(frame_without_a_byte_has_no_address, setup,
						teardown),
		cmocka_unit_test_setup_teardown(reader_gets_frames_unchanged, setup, teardown),
		cmocka_unit_test_setup_teardown(full_ring_counts_drops, setup, teardown),
		cmocka_unit_test_setup_teardown(sleeping_reader_is_woken_once, setup, teardown),
		cmocka_unit_test_setup_teardown(writer_survives_a_hostile_reader, setup, teardown),
		cmocka_unit_test_setup_teardown(reader_detects_a_broken_ring, setup, teardown),
		cmocka_unit_test_setup_teardown(frame_does_not_change_after_the_check, setup,
						teardown),
		cmocka_unit_test_setup_teardown(memory_of_wrong_size_is_not_mapped, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
