/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Recordings in a pcapng file: they come back, libpcap skips them, damage is an error, and a
 * process may have none. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <netdev/netdev.h>

#include "capture/engine_replay.h"
#include "capture/recording_file.h"

#define T0 UINT64_C(1795308088123456789)

/* A file with two processes, two frames, and bytes between them. */
struct file {
	char *bytes;
	size_t n;
};

static void put_frame(struct pcapng *w, uint32_t i)
{
	uint8_t data[60] = {(uint8_t)i};
	const struct pcapng_packet packet = {.interface = i ? "b-2" : "a-1",
					     .time = T0 + i,
					     .direction = i ? PCAPNG_OUTBOUND : PCAPNG_INBOUND,
					     .data = data,
					     .len = 57 + i,
					     .comment = "words"};

	assert_int_equal(pcapng_put(w, &packet), 0);
}

static struct recording_process make_process(uint32_t i)
{
	struct recording_process p = {.pid = 10 + (int)i, .engine_ns = 5, .wall_ns = T0};

	strcpy(p.program, i ? "b" : "a\x1b");
	strcpy(p.port, i ? "b-2" : "a-1");
	return p;
}

static void write_file(struct file *f)
{
	FILE *out = open_memstream(&f->bytes, &f->n);
	struct recording_process p[2] = {make_process(0), make_process(1)};
	struct pcapng w;

	assert_non_null(out);
	assert_int_equal(pcapng_begin(&w, out, "test", "one"), 0);
	assert_int_equal(recording_put_process(&w, 0, &p[0]), 0);
	put_frame(&w, 0);
	assert_int_equal(recording_put_bytes(&w, 0, "first", 5), 0);
	assert_int_equal(recording_put_process(&w, 1, &p[1]), 0);
	assert_int_equal(recording_put_bytes(&w, 1, "other", 5), 0);
	assert_int_equal(pcapng_put_local(&w, PCAPNG_LOCAL | 1, "unknown.", 8), 0);
	assert_int_equal(recording_put_bytes(&w, 0, "", 0), 0);
	assert_int_equal(recording_put_bytes(&w, 0, " second", 7), 0);
	put_frame(&w, 1);
	assert_int_equal(recording_put_lost(&w, UINT64_C(5) << 32), 0);
	pcapng_end(&w);
	fclose(out);
}

static int parse_copy(struct recording_file *r, const void *bytes, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1);

	assert_non_null(copy);
	if (n)
		memcpy(copy, bytes, n);
	return recording_file_parse(r, copy, n);
}

static void recordings_and_frames_come_back(void **state)
{
	struct recording_file r;
	struct file f;

	(void)state;
	write_file(&f);
	assert_int_equal(parse_copy(&r, f.bytes, f.n), 0);
	assert_false(r.cut);
	assert_int_equal(r.n_recordings, 2);
	assert_int_equal(r.recordings[0].n, 12);
	assert_memory_equal(r.recordings[0].bytes, "first second", 12);
	assert_memory_equal(r.recordings[1].bytes, "other", 5);
	assert_int_equal(r.recordings[1].process.pid, 11);
	assert_string_equal(r.recordings[0].process.program, "a?");
	assert_int_equal(r.n_frames, 2);
	assert_string_equal(r.frames[1].port, "b-2");
	assert_int_equal(r.frames[1].len, 58);
	assert_int_equal(r.frames[1].direction, PCAPNG_OUTBOUND);
	assert_int_equal(r.frames[1].time, T0 + 1);
	assert_int_equal(r.lost, UINT64_C(5) << 32);
	recording_file_close(&r);
	free(f.bytes);
}

static void libpcap_skips_recordings(void **state)
{
	char path[] = "/tmp/test-recording-XXXXXX", error[256];
	struct netdev_frame frame;
	struct netdev *port;
	struct file f;
	int fd = mkstemp(path);

	(void)state;
	write_file(&f);
	assert_int_equal(write(fd, f.bytes, f.n), f.n);
	close(fd);
	assert_int_equal(netdev_pcap_open(path, &port, error, sizeof(error)), 0);
	assert_int_equal(netdev_rx(port, 0, &frame, 1), 1);
	assert_int_equal(netdev_rx(port, 0, &frame, 1), 1);
	assert_int_equal(netdev_rx(port, 0, &frame, 1), 0);
	netdev_close(port);
	unlink(path);
	free(f.bytes);
}

static void each_part_of_a_file_is_read(void **state)
{
	struct recording_file r;
	struct file f;
	uint32_t n_frames = 0;

	(void)state;
	write_file(&f);
	for (size_t n = 1; n <= f.n; n++) {
		int rc = parse_copy(&r, f.bytes, n);

		if (rc)
			assert_true(rc == -EPROTO && n < 12);
		else
			assert_true(r.n_frames >= n_frames);
		n_frames = r.n_frames;
		recording_file_close(&r);
	}
	assert_int_equal(n_frames, 2);
	free(f.bytes);
}

static void a_cut_file_is_read_up_to_the_cut_block(void **state)
{
	struct recording_file r;
	struct file f;

	(void)state;
	write_file(&f);
	assert_int_equal(parse_copy(&r, f.bytes, f.n - 4), 0);
	assert_true(r.cut);
	assert_int_equal(r.n_recordings, 2);
	assert_memory_equal(r.recordings[0].bytes, "first second", 12);
	assert_int_equal(r.n_frames, 2);
	assert_int_equal(r.lost, 0); /* the cut block has it */
	recording_file_close(&r);
	free(f.bytes);
}

static void damage_is_no_crash(void **state)
{
	struct recording_file r;
	struct file f;
	uint32_t refused = 0;

	(void)state;
	write_file(&f);
	for (size_t at = 0; at < f.n; at++) {
		static const uint8_t masks[] = {0x01, 0x80, 0xff};

		for (size_t i = 0; i < sizeof(masks); i++) {
			f.bytes[at] = (char)(f.bytes[at] ^ masks[i]);
			refused += parse_copy(&r, f.bytes, f.n) < 0;
			recording_file_close(&r);
			f.bytes[at] = (char)(f.bytes[at] ^ masks[i]);
		}
	}
	assert_true(refused > 100);
	free(f.bytes);
}

static void wrong_blocks_are_refused(void **state)
{
	static const struct {
		uint32_t head[4]; /* version, subtype, number, n */
		int rc;
	} rows[] = {
		{{3, 1, 0, 0}, -EPROTONOSUPPORT}, /* a later version */
		{{0, 1, 0, 0}, -EPROTONOSUPPORT}, /* no version */
		{{2, 4, 0, 0}, -EBADMSG},         /* an unknown subtype */
		{{2, 3, 0, 0}, -EBADMSG},         /* no number of lost frames */
		{{1, 1, 0, 4}, -EBADMSG},         /* a short process */
		{{1, 2, 0, 0}, -EBADMSG},         /* bytes of no process */
		{{1, 2, 0, 4}, -EBADMSG},         /* more bytes than the block has */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct recording_file r;
		struct file f;
		FILE *out = open_memstream(&f.bytes, &f.n);
		struct pcapng w;

		assert_int_equal(pcapng_begin(&w, out, "test", "one"), 0);
		assert_int_equal(pcapng_put_local(&w, RECORDING_BLOCK, rows[i].head, 16), 0);
		pcapng_end(&w);
		fclose(out);
		assert_int_equal(parse_copy(&r, f.bytes, f.n), rows[i].rc);
		recording_file_close(&r);
		free(f.bytes);
	}
}

static void other_files_are_refused(void **state)
{
	static const char pcap[] = "\xd4\xc3\xb2\xa1\2\0\4\0\0\0\0\0\0\0\0\0\0\0\4\0\1\0\0\0";
	char error[RECORDING_ERROR];
	struct recording_file r;

	(void)state;
	assert_int_equal(parse_copy(&r, pcap, sizeof(pcap) - 1), -EPROTO);
	recording_file_close(&r);
	assert_false(recording_file_open(&r, "/nonexistent", error));
	assert_non_null(strstr(error, "/nonexistent"));
	recording_file_close(&r);
	assert_false(recording_file_open(&r, "/proc/version", error));
	assert_non_null(strstr(error, "no pcapng file of urxe capture"));
	recording_file_close(&r);
}

/* The state did not fit the ring, which has only the mark that bytes were lost. */
static void a_state_that_was_too_large_is_no_damage(void **state)
{
	uint8_t mark[URXE_RECORD_END] = {13};
	struct recording recording = {.process = make_process(0), .bytes = mark, .n = sizeof(mark)};
	const struct recording_file none = {0};
	struct engine_replay replay = {.recording = &recording, .capture = &none};

	(void)state;
	recording.process.error = -EFBIG;
	engine_replay_run(&replay);
	assert_int_equal(replay.end, ENGINE_REPLAY_NO_STATE);
	assert_non_null(strstr(recording_error_text(-EFBIG), "32 MiB"));
}

/* The capture was killed behind the block of the process. */
static void a_file_without_the_state_is_cut(void **state)
{
	const struct recording recording = {.process = make_process(0)};
	const struct recording_file none = {0};
	struct engine_replay replay = {.recording = &recording, .capture = &none};

	(void)state;
	engine_replay_run(&replay);
	assert_int_equal(replay.end, ENGINE_REPLAY_DAMAGED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recordings_and_frames_come_back),
		cmocka_unit_test(libpcap_skips_recordings),
		cmocka_unit_test(each_part_of_a_file_is_read),
		cmocka_unit_test(a_cut_file_is_read_up_to_the_cut_block),
		cmocka_unit_test(damage_is_no_crash),
		cmocka_unit_test(wrong_blocks_are_refused),
		cmocka_unit_test(other_files_are_refused),
		cmocka_unit_test(a_state_that_was_too_large_is_no_damage),
		cmocka_unit_test(a_file_without_the_state_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
