/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A recording of a device: its saved state, then each call that the owner made, and what the engine
 * answered. urxe_replay makes the same device, repeats the calls in virtual time, and compares.
 * docs/replay.md describes the format.
 *
 * A recording has no contents of memory: neither of registered memory nor of inline data. It has
 * the headers of sent frames. Of a received frame it has a digest if a capture has the frame, that
 * is, if the frame passed the switch and urxe_recorder.whole_frames is false; else it has the whole
 * frame.
 */
#ifndef URXE_RXE_RECORD_H
#define URXE_RXE_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include <rxe/rxe.h>
#include <rxe/state.h>

/* urxe_replay reads only this version. In version 1 different small frames could have the same
 * digest. Version 2 had neither the set of the owner's callbacks nor the memory of fast
 * registrations. Version 3 lacked calls of urxe_state_save. */
#define URXE_RECORD_VERSION 4
/* Longest headers of a sent frame in a recording, bytes. */
#define URXE_RECORD_HEADERS 128

/* Bytes of the end mark of a recording. */
#define URXE_RECORD_END 8

/* Where a recording goes. */
struct urxe_recorder {
	void *arg;
	/*
	 * Takes the next n bytes of the recording. The engine calls it within calls of the owner;
	 * it must not call the engine. False: the owner takes none of these bytes, because fewer
	 * than n + URXE_RECORD_END are free. Then the engine calls it once more, with the end mark
	 * of URXE_RECORD_END bytes, and records no more. The end mark may use the last bytes.
	 */
	bool (*write)(void *arg, const uint8_t *bytes, size_t n);
	/*
	 * True: the recording has each received frame as a whole, because no capture runs. False:
	 * it has whole frames only of an inbox and of the process's own packet socket.
	 */
	bool whole_frames;
};

/*
 * Starts to record the device at `now`, ns of the device's clock. An earlier recording gets its end
 * mark first. The engine saves the state as urxe_state_save does, with its errors: it withdraws the
 * rights of peers to copy, so the owner calls urxe_copy_rights_publish afterwards. In the saved
 * state the tag of each object (urxe_state_object.tag) is the object's context. -EFBIG: `write` had
 * no room for the state. -EOPNOTSUPP: the device has an HCA, also if the HCA executes no queue
 * pair.
 */
int urxe_record_start(struct urxe_dev *dev, uint64_t now, const struct urxe_recorder *recorder);
/* Ends the recording, if there is one. urxe_dev_destroy and urxe_offload_set do so, too. */
void urxe_record_stop(struct urxe_dev *dev);
bool urxe_recording(const struct urxe_dev *dev);

/* A hash of the first 128 and the last 16 bytes of a frame; `len`: its bytes, with the ICRC. A
 * recording refers to a received frame by its length and this digest. */
uint32_t urxe_record_digest(const uint8_t *data, uint32_t len);

/* An event of a device: a frame or call that it got from its owner, or an action of the engine.
 * Each kind sets the members of urxe_replay_event that its comment names. */
enum urxe_replay_kind {
	URXE_REPLAY_RECEIVED,   /* data: the whole frame, with an ICRC */
	URXE_REPLAY_SENT,       /* data: its headers */
	URXE_REPLAY_DROPPED,    /* drop: the reason */
	URXE_REPLAY_COMPLETION, /* wc: the completion */
	URXE_REPLAY_COMP_EVENT, /* context: of the CQ */
	URXE_REPLAY_ASYNC,      /* async; context: of the QP, CQ or SRQ */
	URXE_REPLAY_CALL,       /* call: of the owner, except urxe_input and urxe_output */
};

struct urxe_replay_event {
	uint8_t kind;  /* enum urxe_replay_kind */
	uint64_t time; /* the device's, ns */
	uint64_t context;
	const uint8_t *data;
	uint32_t data_len;  /* bytes at data */
	uint32_t frame_len; /* bytes of the frame */
	enum urxe_drop drop;
	enum urxe_async async;
	struct urxe_wc wc; /* qp_ctx is NULL */
	const char *call;  /* name of the call */
	uint32_t qpn;      /* of the call; 0: none */
};

/* What urxe_replay needs, and reports. Each callback gets `arg`. */
struct urxe_replay {
	void *arg;
	/*
	 * Returns a captured frame to the device with that length and digest: the first one after
	 * the frame that the previous call returned. It stays valid until the next call. NULL: the
	 * capture has no such frame.
	 */
	const uint8_t *(*frame)(void *arg, uint32_t len, uint32_t digest);
	/* Called for each event in which device and recording agree. NULL: not called. */
	void (*event)(void *arg, const struct urxe_replay_event *event);
	/* Upper limit, in bytes, of the queues and lists of the restored device; and, once more, of
	 * the queues and lists that repeated calls have made and not destroyed. 0 = no limit. */
	uint64_t max_bytes;

	/* Results of urxe_replay. */
	uint64_t time;  /* of the last call that was repeated */
	uint64_t calls; /* number of calls that were repeated */
	bool has_end;   /* urxe_record_stop ended it; else `lost`, a dead process, or a cut file */
	bool lost;      /* the recording ends because its recorder ran out of room */
	/*
	 * After -EILSEQ: the recorded event and the device's event that differ. has_expected is
	 * false if the recording has no event there, has_actual if the device did nothing more.
	 * Both are false if the difference is a call of urxe_ops.refill, or a recorded answer that
	 * the device did not ask for.
	 */
	bool has_expected, has_actual;
	struct urxe_replay_event expected, actual;
	uint8_t expected_data[URXE_RECORD_HEADERS], actual_data[URXE_RECORD_HEADERS];
};

/*
 * Repeats a recording, which may be cut at any byte. 0: the device did the same, up to the end or
 * the cut. -ENOENT: `frame` did not find a frame. -EILSEQ: the device did something else. -EBADMSG:
 * the recording is damaged. -EPROTONOSUPPORT: it has another URXE_RECORD_VERSION. Other errors as
 * of urxe_state_restore. No memory that a region of the recording names is accessed.
 */
int urxe_replay(struct urxe_replay *replay, const uint8_t *recording, size_t length);

#endif
