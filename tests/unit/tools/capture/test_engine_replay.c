/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Replays of an engine with the frames of a capture: which of the sent frames the capture has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rxe/record.h>

#include "capture/engine_replay.h"
#include "pair.h"

#define FRAMES         100000
#define FRAME_LEN      (14 + 20 + 8 + 12 + 16 + 100 + 4)
#define RECORDING_ROOM (64u << 20)
#define BTH_QPN        (14 + 20 + 8 + 5)

static struct recording recording = {.process = {.port = "own"}};
static uint8_t (*sent)[FRAME_LEN];
static struct recording_file capture;

static bool write_recording(void *arg, const uint8_t *bytes, size_t n)
{
	(void)arg;
	if (recording.n + n > recording.room)
		return false;
	memcpy(recording.bytes + recording.n, bytes, n);
	recording.n += n;
	return true;
}

/* The engine of node 0 sends FRAMES RDMA WRITEs of 100 bytes, each in a packet. */
static int record_writes(void **state)
{
	const struct urxe_recorder recorder = {.write = write_recording};
	struct conn_attr conn = conn_default(URXE_QPT_UC);
	struct pair *pair = pair_create(&(struct pair_attr){.seed = 5});
	const struct urxe_seg seg = node_seg(pair->node[0], 0, 100);
	const struct urxe_send_wr wr = {.opcode = URXE_WR_RDMA_WRITE,
					.n_segs = 1,
					.segs = &seg,
					.remote_addr = pair->node[1]->iova,
					.rkey = pair->node[1]->key};
	struct endpoint end[2];
	uint8_t data[8192];

	(void)state;
	conn.sq_sig_all = false;
	conn_open(pair, &conn, end);
	recording.room = RECORDING_ROOM;
	recording.bytes = malloc(recording.room);
	sent = malloc(sizeof(*sent) * FRAMES);
	capture.frames = malloc(sizeof(*capture.frames) * FRAMES);
	if (!recording.bytes || !sent || !capture.frames ||
	    urxe_record_start(pair->node[0]->dev, pair->now, &recorder))
		return -1;
	for (uint32_t i = 0; i < FRAMES; i++) {
		struct urxe_frame frame = {.data = data, .room = sizeof(data)};

		if (urxe_post_send(end[0].qp, &wr) ||
		    urxe_output(pair->node[0]->dev, pair->now, &frame, 1) != 1 ||
		    frame.len != FRAME_LEN)
			return -1;
		memcpy(sent[i], data, FRAME_LEN);
	}
	urxe_record_stop(pair->node[0]->dev);
	pair_destroy(pair);
	return 0;
}

static int free_all(void **state)
{
	(void)state;
	free(recording.bytes);
	free(sent);
	free(capture.frames);
	return 0;
}

static void capture_frame(const uint8_t *data, const char *port, enum pcapng_direction direction)
{
	struct recorded_frame *frame = &capture.frames[capture.n_frames++];

	*frame = (struct recorded_frame){
		.data = data, .len = FRAME_LEN, .direction = (uint8_t)direction};
	strcpy(frame->port, port);
}

static uint64_t count_captured(void)
{
	struct engine_replay r = {.recording = &recording, .capture = &capture};

	engine_replay_run(&r);
	assert_int_equal(r.end, ENGINE_REPLAY_SAME);
	assert_int_equal(r.sent, FRAMES);
	capture.n_frames = 0;
	return r.sent_captured;
}

static void frames_of_other_ports_and_directions_do_not_count(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 8; i++)
		capture_frame(sent[i], i & 1 ? "own" : "other",
			      i & 2 ? PCAPNG_INBOUND : PCAPNG_OUTBOUND);
	assert_int_equal(count_captured(), 2);
}

/* Without the process's port in the capture, frames of each port count. */
static void frames_of_any_port_count_in_a_foreign_capture(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 8; i++)
		capture_frame(sent[i], "eth0", i & 2 ? PCAPNG_INBOUND : PCAPNG_OUTBOUND);
	assert_int_equal(count_captured(), 8);
}

/* A captured frame counts once, and not behind a later one. */
static void captured_frames_count_in_their_order(void **state)
{
	(void)state;
	capture_frame(sent[5], "own", PCAPNG_INBOUND);
	capture_frame(sent[3], "own", PCAPNG_INBOUND);
	capture_frame(sent[7], "own", PCAPNG_INBOUND);
	assert_int_equal(count_captured(), 2);
}

/* Of five frames the capture lacks four, and has others of the same length in their place. The
 * search of each must not go through the whole capture. */
static void capture_lacks_most_frames(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < FRAMES; i++) {
		capture_frame(sent[i], "own", PCAPNG_INBOUND);
		sent[i][BTH_QPN] ^= i % 5 ? 0xff : 0;
	}
	assert_int_equal(count_captured(), FRAMES / 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_of_other_ports_and_directions_do_not_count),
		cmocka_unit_test(frames_of_any_port_count_in_a_foreign_capture),
		cmocka_unit_test(captured_frames_count_in_their_order),
		cmocka_unit_test(capture_lacks_most_frames),
	};

	return cmocka_run_group_tests(tests, record_writes, free_all);
}
