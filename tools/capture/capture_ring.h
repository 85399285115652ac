/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Frames on their way from the daemon to who captures them: a ring in memory that
 * both map.
 *
 * The writer never waits: a frame that finds no room is counted as lost. It trusts
 * nothing that the reader can write, which is all of the memory, since it reads nothing
 * of it back but how far the reader says to be. Integers are in host byte order.
 */
#ifndef URXE_CAPTURE_CAPTURE_RING_H
#define URXE_CAPTURE_CAPTURE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "urxed/switch/port.h"

#define CAPTURE_RING_BYTES (4u << 20) /* of records; a power of 2 */
#define CAPTURE_REASON     32         /* with its NUL */

/* Records do not go round the end of the memory: one without a frame fills it up. */
#define CAPTURE_PAD     UINT32_MAX
#define CAPTURE_PAD_LEN 8 /* bytes of it that are there at least */

/* What is known of a frame; its bytes stand behind it. */
struct capture_record {
	uint32_t size; /* of this record with its frame and padding, bytes, a multiple of 8 */
	uint32_t len;  /* of the frame, bytes; CAPTURE_PAD: there is none, nor what follows here */
	uint64_t time; /* ns since 1970 */
	uint32_t port; /* its number */
	uint8_t direction; /* enum switch_direction */
	uint8_t reserved[3];
	char name[SWITCH_PORT_NAME]; /* the port's */
	char reason[CAPTURE_REASON]; /* why the frame was dropped; "" = it was not */
};

/* At the start of the memory; records begin a page behind. All counts are in bytes, free-running.
 */
struct capture_ring {
	_Atomic uint64_t head; /* written so far */
	_Atomic uint64_t lost; /* frames */
	uint8_t padding[48];
	_Atomic uint64_t tail;    /* read so far: the reader's */
	_Atomic uint32_t waiting; /* the reader sleeps, and wants to be woken: 1 */
};

#define CAPTURE_RING_START 4096
#define CAPTURE_RING_SIZE  (CAPTURE_RING_START + CAPTURE_RING_BYTES)

/* --- The daemon's end */

struct capture_writer {
	struct capture_ring *ring;
	uint64_t head;
	uint64_t lost;
	bool broken; /* the reader says what cannot be: nothing is written any more */
};

/* Returns the memory's descriptor, or a negative errno value. */
int capture_writer_open(struct capture_writer *w);
void capture_writer_close(struct capture_writer *w);
/*
 * Adds a frame; record has all but size. True: the reader sleeps, and is to be woken.
 */
bool capture_writer_put(struct capture_writer *w, struct capture_record *record,
			const uint8_t *frame);

/* --- The reader's end, who trusts the writer to be a daemon, and checks sizes all the same. */

struct capture_reader {
	struct capture_ring *ring;
	uint64_t tail;
};

int capture_reader_open(struct capture_reader *r, int fd);
void capture_reader_close(struct capture_reader *r);
/*
 * The next frame, valid until the next call: 1; 0: there is none; -EPROTO: the ring is
 * broken. Gives back the one before.
 */
int capture_reader_next(struct capture_reader *r, const struct capture_record **record,
			const uint8_t **frame);
/* Says that the reader is about to sleep. False: something has come meanwhile. */
bool capture_reader_wait(struct capture_reader *r);
/* Where what is written so far ends; the reader is at r->tail. */
uint64_t capture_reader_head(const struct capture_reader *r);
uint64_t capture_reader_lost(const struct capture_reader *r);

#endif
