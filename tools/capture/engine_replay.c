/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "capture/engine_replay.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rxe/opcode.h>
#include <rxe/packet.h>

#include "capture/frame_text.h"
#include "common/json_fields.h"

/* A replay refuses a recorded device whose queues and lists need more memory than this. */
#define MAX_BYTES (UINT64_C(4) << 30)
#define NS        UINT64_C(1000000000)

static const struct {
	const char *name, *text;
} ends[] = {
#define END_ROW(id, name, text) {name, text},
	ENGINE_REPLAY_LIST(END_ROW)
#undef END_ROW
};

/* --- Captured frames. */

static bool is_of_port(const struct engine_replay *r, const struct recorded_frame *frame,
		       enum pcapng_direction direction)
{
	if (r->any_port)
		return true;
	return frame->direction == direction && !strcmp(frame->port, r->recording->process.port);
}

static bool has_port(const struct recording_file *capture, const char *port)
{
	for (uint32_t i = 0; i < capture->n_frames; i++)
		if (!strcmp(capture->frames[i].port, port))
			return true;
	return false;
}

/* For urxe_replay.frame: the next captured frame to the process with this length and digest; NULL:
 * none. Frames to the process are those that leave the switch at its port. */
static const uint8_t *find_received(void *arg, uint32_t len, uint32_t digest)
{
	struct engine_replay *r = arg;

	for (uint32_t i = r->next; i < r->capture->n_frames; i++) {
		const struct recorded_frame *frame = &r->capture->frames[i];

		if (frame->len != len || !is_of_port(r, frame, PCAPNG_OUTBOUND) ||
		    urxe_record_digest(frame->data, len) != digest)
			continue;
		r->next = i + 1;
		return frame->data;
	}
	return NULL;
}

/* Returns the head of the list, in the index of sent frames, to which the frame belongs. */
static uint32_t *sent_list(const struct engine_replay *r, const uint8_t *data, uint32_t len)
{
	struct urxe_packet p;
	uint32_t hash = len;

	if (!urxe_packet_parse(&p, data, len))
		hash ^= p.psn * 0x9e3779b1u ^ p.dest_qpn * 0x85ebca6bu;
	return &r->sent_lists[hash & (r->n_lists - 1)];
}

/* Makes the index of the frames that the process sent. A list has frames of one hash, each as
 * its number in the capture plus 1, in the order of the capture; 0 ends it. */
static bool index_sent(struct engine_replay *r)
{
	const uint32_t n = r->capture->n_frames;

	for (r->n_lists = 1; r->n_lists < n; r->n_lists *= 2)
		;
	r->sent_lists = calloc(r->n_lists, sizeof(*r->sent_lists));
	r->sent_next = calloc(n ? n : 1, sizeof(*r->sent_next));
	if (!r->sent_lists || !r->sent_next)
		return false;
	for (uint32_t i = n; i-- > 0;) {
		const struct recorded_frame *frame = &r->capture->frames[i];
		uint32_t *list;

		if (!is_of_port(r, frame, PCAPNG_INBOUND))
			continue;
		list = sent_list(r, frame->data, frame->len);
		r->sent_next[i] = *list;
		*list = i + 1;
	}
	return true;
}

/* Whether the capture has the event's frame behind the last one that was found. `whole` is that
 * frame; its payload is not compared. */
static bool find_sent(struct engine_replay *r, const struct urxe_replay_event *event,
		      const uint8_t *whole)
{
	uint32_t *list = sent_list(r, whole, event->frame_len);

	while (*list && *list <= r->next_sent)
		*list = r->sent_next[*list - 1];
	for (uint32_t i = *list; i; i = r->sent_next[i - 1]) {
		const struct recorded_frame *frame = &r->capture->frames[i - 1];

		if (frame->len != event->frame_len ||
		    memcmp(frame->data, event->data, event->data_len) != 0)
			continue;
		r->next_sent = i;
		return true;
	}
	return false;
}

/* --- Text. */

static const char *status_name(uint32_t status)
{
	static const char *const names[] = {
		[URXE_WC_SUCCESS] = "SUCCESS",
		[URXE_WC_LOC_LEN_ERR] = "LOC_LEN_ERR",
		[URXE_WC_LOC_QP_OP_ERR] = "LOC_QP_OP_ERR",
		[URXE_WC_LOC_PROT_ERR] = "LOC_PROT_ERR",
		[URXE_WC_WR_FLUSH_ERR] = "WR_FLUSH_ERR",
		[URXE_WC_MW_BIND_ERR] = "MW_BIND_ERR",
		[URXE_WC_BAD_RESP_ERR] = "BAD_RESP_ERR",
		[URXE_WC_LOC_ACCESS_ERR] = "LOC_ACCESS_ERR",
		[URXE_WC_REM_INV_REQ_ERR] = "REM_INV_REQ_ERR",
		[URXE_WC_REM_ACCESS_ERR] = "REM_ACCESS_ERR",
		[URXE_WC_REM_OP_ERR] = "REM_OP_ERR",
		[URXE_WC_RETRY_EXC_ERR] = "RETRY_EXC_ERR",
		[URXE_WC_RNR_RETRY_EXC_ERR] = "RNR_RETRY_EXC_ERR",
	};

	return status < sizeof(names) / sizeof(names[0]) && names[status] ? names[status]
									  : "unknown status";
}

static const char *async_name(enum urxe_async event)
{
	switch (event) {
	case URXE_ASYNC_CQ_ERR: return "CQ_ERR";
	case URXE_ASYNC_QP_FATAL: return "QP_FATAL";
	case URXE_ASYNC_QP_REQ_ERR: return "QP_REQ_ERR";
	case URXE_ASYNC_QP_ACCESS_ERR: return "QP_ACCESS_ERR";
	case URXE_ASYNC_COMM_EST: return "COMM_EST";
	case URXE_ASYNC_SQ_DRAINED: return "SQ_DRAINED";
	case URXE_ASYNC_SRQ_ERR: return "SRQ_ERR";
	case URXE_ASYNC_SRQ_LIMIT_REACHED: return "SRQ_LIMIT_REACHED";
	case URXE_ASYNC_QP_LAST_WQE_REACHED: return "QP_LAST_WQE_REACHED";
	}
	return "unknown event";
}

/* Returns the event's frame, valid until the next call. If the recording has only its headers, the
 * payload is zeros. */
static uint8_t *whole_frame(const struct urxe_replay_event *event)
{
	static uint8_t frame[UINT16_MAX + 1];

	memset(frame, 0, event->frame_len);
	memcpy(frame, event->data, event->data_len);
	return frame;
}

static void sent_words(char text[FRAME_TEXT], const struct urxe_replay_event *event)
{
	uint8_t *frame = whole_frame(event);

	urxe_frame_add_icrc(frame, event->frame_len);
	frame_words(text, frame, event->frame_len);
}

static void completion_words(char text[ENGINE_REPLAY_TEXT], const struct urxe_wc *wc)
{
	int n = snprintf(text, ENGINE_REPLAY_TEXT, "completion of QP 0x%06x, wr_id %" PRIu64 ": %s",
			 wc->qpn, wc->wr_id, status_name(wc->status));

	if (!wc->status && wc->opcode & URXE_WC_RECV)
		snprintf(text + n, ENGINE_REPLAY_TEXT - (size_t)n, ", %u bytes", wc->byte_len);
}

static void event_words(char text[ENGINE_REPLAY_TEXT], const struct urxe_replay_event *event)
{
	char words[FRAME_TEXT];

	switch ((enum urxe_replay_kind)event->kind) {
	case URXE_REPLAY_RECEIVED:
		frame_words(words, event->data, event->frame_len);
		snprintf(text, ENGINE_REPLAY_TEXT, "received %s", words);
		break;
	case URXE_REPLAY_SENT:
		sent_words(words, event);
		snprintf(text, ENGINE_REPLAY_TEXT, "sent %s", words);
		break;
	case URXE_REPLAY_DROPPED:
		snprintf(text, ENGINE_REPLAY_TEXT, "dropped: %s", urxe_drop_name(event->drop));
		break;
	case URXE_REPLAY_COMPLETION: completion_words(text, &event->wc); break;
	case URXE_REPLAY_COMP_EVENT: snprintf(text, ENGINE_REPLAY_TEXT, "completion event"); break;
	case URXE_REPLAY_ASYNC:
		snprintf(text, ENGINE_REPLAY_TEXT, "event %s", async_name(event->async));
		break;
	case URXE_REPLAY_CALL:
		if (event->qpn)
			snprintf(text, ENGINE_REPLAY_TEXT, "call %s of QP 0x%06x", event->call,
				 event->qpn);
		else
			snprintf(text, ENGINE_REPLAY_TEXT, "call %s", event->call);
		break;
	}
}

/* --- Events. */

/* Whether a frame is a NAK. IBA table 43: 1 = RNR NAK, 3 = NAK. */
static bool is_nak(const uint8_t *frame, uint32_t len)
{
	struct urxe_packet p;

	return !urxe_packet_parse(&p, frame, len) && urxe_opcodes[p.opcode].flags & URXE_OPF_AETH &&
	       (p.aeth.syndrome >> 5 == 1 || p.aeth.syndrome >> 5 == 3);
}

static bool count_event(struct engine_replay *r, const struct urxe_replay_event *event)
{
	const uint8_t *frame;
	bool nak;

	switch ((enum urxe_replay_kind)event->kind) {
	case URXE_REPLAY_RECEIVED:
		nak = is_nak(event->data, event->frame_len);
		r->received++;
		r->naks_received += nak;
		return nak;
	case URXE_REPLAY_SENT:
		frame = whole_frame(event);
		nak = is_nak(frame, event->frame_len);
		r->sent++;
		r->sent_captured += find_sent(r, event, frame);
		r->naks_sent += nak;
		return nak;
	case URXE_REPLAY_DROPPED: r->drops[event->drop]++; return true;
	case URXE_REPLAY_COMPLETION:
		r->completions++;
		if (event->wc.status && event->wc.status <= URXE_WC_RNR_RETRY_EXC_ERR)
			r->errors[event->wc.status]++;
		return event->wc.status;
	case URXE_REPLAY_ASYNC: r->async++; return true;
	default: return false;
	}
}

static uint64_t since_start(const struct engine_replay *r, uint64_t time)
{
	const uint64_t start = r->recording->process.engine_ns;

	return time > start ? time - start : 0;
}

static void on_event(void *arg, const struct urxe_replay_event *event)
{
	struct engine_replay *r = arg;
	const bool fault = count_event(r, event);
	const uint64_t time = since_start(r, event->time);
	char text[ENGINE_REPLAY_TEXT], line[ENGINE_REPLAY_TEXT + 32];

	if (!r->line || !(fault || r->all))
		return;
	event_words(text, event);
	snprintf(line, sizeof(line), "  +%" PRIu64 ".%09" PRIu64 "  %s", time / NS, time % NS,
		 text);
	r->line(r->arg, line);
}

/* --- The replay. */

/*
 * Whether the capture has no more frames to the process: behind the last one that was found, none
 * is later than the last repeated call. Frames of that call itself may be later than the call, so
 * its time alone cannot tell.
 */
static bool has_capture_ended(const struct engine_replay *r)
{
	const struct recording_process *process = &r->recording->process;
	const uint64_t now = process->wall_ns + since_start(r, r->replay.time);

	for (uint32_t i = r->next; i < r->capture->n_frames; i++) {
		const struct recorded_frame *frame = &r->capture->frames[i];

		if (is_of_port(r, frame, PCAPNG_OUTBOUND) && frame->time > now)
			return false;
	}
	return true;
}

static enum engine_replay_end end_of(const struct engine_replay *r, int rc)
{
	switch (rc) {
	case 0: return ENGINE_REPLAY_SAME;
	case -ENOENT:
		return has_capture_ended(r) ? ENGINE_REPLAY_CAPTURE_ENDS
					    : ENGINE_REPLAY_FRAME_MISSING;
	case -EILSEQ: return ENGINE_REPLAY_DIFFERENT;
	case -EPROTONOSUPPORT: return ENGINE_REPLAY_OTHER_VERSION;
	case -EFBIG:
	case -ENOMEM: return ENGINE_REPLAY_NO_MEMORY;
	default: return ENGINE_REPLAY_DAMAGED;
	}
}

void engine_replay_run(struct engine_replay *r)
{
	const struct recording *recording = r->recording;

	r->replay = (struct urxe_replay){
		.arg = r, .frame = find_received, .event = on_event, .max_bytes = MAX_BYTES};
	/* With an error the recording has no state, but only its end mark. */
	if (recording->process.error) {
		r->end = ENGINE_REPLAY_NO_STATE;
		return;
	}
	r->any_port = !has_port(r->capture, recording->process.port);
	r->end = end_of(r, index_sent(r) ? urxe_replay(&r->replay, recording->bytes, recording->n)
					 : -ENOMEM);
	free(r->sent_lists);
	free(r->sent_next);
	r->sent_lists = r->sent_next = NULL;
	if (r->replay.has_expected)
		event_words(r->expected, &r->replay.expected);
	if (r->replay.has_actual)
		event_words(r->actual, &r->replay.actual);
}

bool engine_replay_is_same(const struct engine_replay *r)
{
	return r->end <= ENGINE_REPLAY_CAPTURE_ENDS;
}

/* Time from the start of the recording to the end of the replay, ns. */
static uint64_t engine_replay_duration(const struct engine_replay *r)
{
	return since_start(r, r->replay.time);
}

/* --- Output. */

static void print_end(const struct engine_replay *r)
{
	const uint64_t time = engine_replay_duration(r);

	printf("  %s, %" PRIu64 ".%09" PRIu64 " s and %" PRIu64 " calls after the start\n",
	       ends[r->end].text, time / NS, time % NS, r->replay.calls);
	if (r->end == ENGINE_REPLAY_DIFFERENT)
		printf("    in the capture: %s\n    in the replay:  %s\n",
		       r->expected[0] ? r->expected : "nothing more",
		       r->actual[0] ? r->actual : "nothing more");
	if (r->end == ENGINE_REPLAY_FRAME_MISSING && r->capture->lost)
		printf("    urxe capture lost %" PRIu64 " frames of the switch\n",
		       r->capture->lost);
	if (engine_replay_is_same(r) && r->replay.lost)
		puts("  the recording ends early: urxe capture was too slow");
	else if (engine_replay_is_same(r) && !r->replay.has_end)
		puts("  the recording has no end: the capture ended before the program, or the "
		     "file is cut");
}

void engine_replay_print(const struct engine_replay *r)
{
	if (r->end == ENGINE_REPLAY_NO_STATE) {
		printf("  %s: %s\n", ends[r->end].text,
		       recording_error_text(r->recording->process.error));
		return;
	}
	printf("  %" PRIu64 " frames received, with %" PRIu64 " NAKs; %" PRIu64 " sent (%" PRIu64
	       " in the capture), with %" PRIu64 " NAKs\n",
	       r->received, r->naks_received, r->sent, r->sent_captured, r->naks_sent);
	printf("  %" PRIu64 " completions, %" PRIu64 " events\n", r->completions, r->async);
	for (uint32_t i = 1; i <= URXE_WC_RNR_RETRY_EXC_ERR; i++)
		if (r->errors[i])
			printf("    %" PRIu64 " %s\n", r->errors[i], status_name(i));
	for (uint32_t i = 1; i < URXE_DROP_COUNT; i++)
		if (r->drops[i])
			printf("    %" PRIu64 " frames dropped: %s\n", r->drops[i],
			       urxe_drop_name((enum urxe_drop)i));
	print_end(r);
}

static json_t *make_counts(const struct engine_replay *r, bool drops)
{
	const uint32_t n = drops ? (uint32_t)URXE_DROP_COUNT : URXE_WC_RNR_RETRY_EXC_ERR + 1u;
	json_t *counts = json_object();

	for (uint32_t i = 1; i < n; i++) {
		const uint64_t count = drops ? r->drops[i] : r->errors[i];
		const char *name = drops ? urxe_drop_name((enum urxe_drop)i) : status_name(i);

		if (count)
			json_object_set_new(counts, name, json_integer((json_int_t)count));
	}
	return counts;
}

#define INT(value) ((json_int_t)(value))

void engine_replay_print_json(const struct engine_replay *r)
{
	const struct recording_process *process = &r->recording->process;
	json_t *object = json_pack(
		"{s:s, s:i, s:s, s:s, s:I, s:I, s:b, s:I, s:I, s:I, s:I, s:I, s:o, s:I, s:o, s:I, "
		"s:o, s:o, s:I}",
		"process", process->program, "pid", process->pid, "port", process->port, "result",
		ends[r->end].name, "duration_ns", INT(engine_replay_duration(r)), "calls",
		INT(r->replay.calls), "whole", r->replay.has_end, "received", INT(r->received),
		"sent", INT(r->sent), "sent_captured", INT(r->sent_captured), "naks_received",
		INT(r->naks_received), "naks_sent", INT(r->naks_sent), "drops",
		make_counts(r, true), "completions", INT(r->completions), "errors",
		make_counts(r, false), "async_events", INT(r->async), "expected",
		json_text_or_null(r->expected), "actual", json_text_or_null(r->actual),
		"capture_lost", INT(r->capture->lost));

	if (object)
		json_dumpf(object, stdout, JSON_ENSURE_ASCII | JSON_PRESERVE_ORDER);
	json_decref(object);
}
