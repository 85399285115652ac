/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The ring of a recording: bytes come as they were written, and no side trusts the other's
 * position. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <vnic/record_ring.h>

struct ends {
	struct vnic_record_side writer, reader;
};

static void open_ends(struct ends *ends)
{
	int fd = vnic_record_create();

	assert_true(fd >= 0);
	assert_int_equal(vnic_record_open(&ends->writer, fd), 0);
	assert_int_equal(vnic_record_open(&ends->reader, fd), 0);
	close(fd);
}

static void close_ends(struct ends *ends)
{
	vnic_record_close(&ends->writer);
	vnic_record_close(&ends->reader);
}

static void the_process_is_read_when_it_has_answered(void **state)
{
	struct vnic_record_process process = {.pid = 7}, found;
	struct ends ends;

	(void)state;
	open_ends(&ends);
	assert_false(vnic_record_get_process(&ends.reader, &found));
	memset(process.program, 'x', sizeof(process.program));
	vnic_record_set_process(&ends.writer, &process);
	assert_true(vnic_record_get_process(&ends.reader, &found));
	assert_int_equal(found.pid, 7);
	assert_int_equal(strlen(found.program), sizeof(found.program) - 1);
	close_ends(&ends);
}

static void bytes_come_around_the_end(void **state)
{
	const size_t step = 1000003;
	uint8_t *out = malloc(step), *in = malloc(step);
	struct ends ends;

	(void)state;
	open_ends(&ends);
	for (uint64_t at = 0; at < 3 * VNIC_RECORD_BYTES; at += step) {
		for (size_t i = 0; i < step; i++)
			out[i] = (uint8_t)(at / step + i);
		assert_true(vnic_record_write(&ends.writer, out, step, 8));
		assert_int_equal(vnic_record_read(&ends.reader, in, step / 3), step / 3);
		assert_int_equal(vnic_record_read(&ends.reader, in + step / 3, step),
				 step - step / 3);
		assert_memory_equal(in, out, step);
		assert_int_equal(vnic_record_read(&ends.reader, in, step), 0);
	}
	free(out);
	free(in);
	close_ends(&ends);
}

static void a_full_ring_keeps_the_reserve(void **state)
{
	uint8_t *bytes = calloc(1, VNIC_RECORD_BYTES);
	struct ends ends;

	(void)state;
	open_ends(&ends);
	assert_false(vnic_record_write(&ends.writer, bytes, VNIC_RECORD_BYTES, 8));
	assert_true(vnic_record_write(&ends.writer, bytes, VNIC_RECORD_BYTES - 8, 8));
	assert_false(vnic_record_write(&ends.writer, bytes, 1, 8));
	assert_true(vnic_record_write(&ends.writer, bytes, 8, 0));
	assert_false(vnic_record_write(&ends.writer, bytes, 1, 0));
	assert_int_equal(vnic_record_read(&ends.reader, bytes, 9), 9);
	assert_true(vnic_record_write(&ends.writer, bytes, 1, 8));
	free(bytes);
	close_ends(&ends);
}

static void impossible_positions_move_nothing(void **state)
{
	uint8_t byte = 1;
	struct ends ends;

	(void)state;
	open_ends(&ends);
	atomic_store(&ends.writer.ring->tail, 1);
	assert_false(vnic_record_write(&ends.writer, &byte, 1, 0));
	atomic_store(&ends.writer.ring->head, VNIC_RECORD_BYTES + 1);
	assert_int_equal(vnic_record_read(&ends.reader, &byte, 1), 0);
	close_ends(&ends);
}

/* A forked child ends nothing. */
static void the_reader_sees_the_end(void **state)
{
	struct vnic_record_side child;
	uint8_t byte = 1;
	struct ends ends;
	int fd = vnic_record_create();

	(void)state;
	assert_int_equal(vnic_record_open(&ends.writer, fd), 0);
	assert_int_equal(vnic_record_open(&ends.reader, fd), 0);
	assert_int_equal(vnic_record_open(&child, fd), 0);
	close(fd);
	vnic_record_abandon(&child);
	assert_null(child.ring);
	assert_true(vnic_record_write(&ends.writer, &byte, 1, 0));
	assert_false(vnic_record_has_ended(&ends.reader));
	vnic_record_close(&ends.writer);
	assert_true(vnic_record_has_ended(&ends.reader));
	assert_int_equal(vnic_record_read(&ends.reader, &byte, 1), 1);
	vnic_record_close(&ends.reader);
}

static void other_memory_is_refused(void **state)
{
	struct vnic_record_side end;
	int fd = memfd_create("test", MFD_CLOEXEC);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, VNIC_RECORD_SIZE), 0);
	assert_int_equal(vnic_record_open(&end, fd), -EPERM);
	assert_null(end.ring);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_process_is_read_when_it_has_answered),
		cmocka_unit_test(bytes_come_around_the_end),
		cmocka_unit_test(a_full_ring_keeps_the_reserve),
		cmocka_unit_test(impossible_positions_move_nothing),
		cmocka_unit_test(the_reader_sees_the_end),
		cmocka_unit_test(other_memory_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
