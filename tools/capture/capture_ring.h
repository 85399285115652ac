/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A ring in shared memory through which the daemon (capture_tap.c) gives captured frames to urxe
 * capture (cmd_capture.c). Integers are in host byte order.
 *
 * The writer never waits: a frame without room is counted as lost. The reader can write to all of
 * the memory, so the writer reads only the reader's position, which it checks, and `waiting`. The
 * reader copies each record, and checks the copy.
 */
#ifndef URXE_CAPTURE_CAPTURE_RING_H
#define URXE_CAPTURE_CAPTURE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "urxed/switch/switch_port.h"

#define CAPTURE_RING_BYTES (4u << 20) /* of records; a power of 2 */
#define CAPTURE_REASON     32         /* bytes of a drop reason's name, with its NUL */

/* A record never wraps around the end of the ring: a record without a frame pads the ring. */
#define CAPTURE_PAD     UINT32_MAX
#define CAPTURE_PAD_LEN 8 /* minimum length of such a record in bytes */

/* The header of a frame's record; the frame follows. */
struct capture_record {
	uint32_t size;     /* bytes of the record with frame and padding, a multiple of 8 */
	uint32_t len;      /* bytes of the frame; CAPTURE_PAD: no frame, and no further members */
	uint64_t time;     /* ns since 1970 */
	uint32_t port;     /* the port's number */
	uint8_t direction; /* enum switch_direction */
	uint8_t reserved[3];
	char name[SWITCH_PORT_NAME]; /* the port's name */
	char reason[CAPTURE_REASON]; /* name of the drop reason; "" = not dropped */
};

/* At the start of the memory; records begin at CAPTURE_RING_START. Positions are free-running. */
struct capture_ring {
	_Atomic uint64_t head;       /* bytes written */
	_Atomic uint64_t lost;       /* frames for which the ring had no room, or that the writer
					did not get whole */
	_Atomic uint32_t unrecorded; /* processes whose recordings the reader does not get */
	/* 1 = the recording rings (vnic/record_ring.h) of the processes that ran when the capture
	 * began were sent to the reader, except those of `unrecorded` ones. */
	_Atomic uint32_t listed;
	uint8_t padding[40];
	_Atomic uint64_t tail;    /* bytes read; written by the reader */
	_Atomic uint32_t waiting; /* 1 = the reader sleeps and must be woken */
};

#define CAPTURE_RING_START 4096
#define CAPTURE_RING_SIZE  (CAPTURE_RING_START + CAPTURE_RING_BYTES)

/* --- The daemon's end */

struct capture_writer {
	struct capture_ring *ring;
	uint64_t head;
	uint64_t lost;
	uint32_t unrecorded;
	bool broken; /* the reader's position was impossible: all further frames are lost */
};

/* Returns the memory's descriptor, or a negative errno value. */
int capture_writer_open(struct capture_writer *w);
void capture_writer_close(struct capture_writer *w);
/*
 * Adds a frame of record->len bytes; the caller has set all members of record but size. Without
 * room, the frame counts as lost. True: the caller must wake the reader, which sleeps.
 */
bool capture_writer_put(struct capture_writer *w, struct capture_record *record,
			const uint8_t *frame);
/* Counts a frame that the writer did not get whole as lost. */
void capture_writer_count_lost(struct capture_writer *w);

/* Counts a process whose recording the reader does not get. */
void capture_writer_count_unrecorded(struct capture_writer *w);
/* Sets `listed`, which says that the recording rings of present processes were sent. */
void capture_writer_set_listed(struct capture_writer *w);

/* --- The reader's end. It trusts no value: root may read the ring of a user's daemon. */

struct capture_reader {
	struct capture_ring *ring;
	uint64_t tail;
	uint8_t *copy; /* of the record that capture_reader_next has returned */
};

/*
 * Maps the memory of a capture_writer. 0; -EPROTO: it is no such memory; -ENOMEM or another
 * negative errno value. fd stays the caller's.
 */
int capture_reader_open(struct capture_reader *r, int fd);
void capture_reader_close(struct capture_reader *r);
/*
 * Returns 1 with the next frame, which is valid until the next call; 0: no frame is pending;
 * -EPROTO: the ring is corrupt.
 */
int capture_reader_next(struct capture_reader *r, const struct capture_record **record,
			const uint8_t **frame);
/* Before a sleep: the writer will wake the reader. False: a frame is there, so do not sleep. */
bool capture_reader_wait(struct capture_reader *r);
/* The position behind the newest record; the reader's position is r->tail. */
uint64_t capture_reader_head(const struct capture_reader *r);
uint64_t capture_reader_lost(const struct capture_reader *r);
uint32_t capture_reader_unrecorded(const struct capture_reader *r);
/* Whether the daemon has set `listed`: the reader has received all those recording rings, or they
 * wait in the socket. */
bool capture_reader_is_listed(const struct capture_reader *r);

#endif
