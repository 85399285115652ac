/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A ring of bytes in shared memory, by which a process gives the recording of its engine
 * (rxe/record.h) to urxe capture. The daemon creates it. Integers are in host byte order.
 *
 * The writer never waits. Each side can write to all of the memory, so each keeps its own position,
 * reads the other's once for each call, and checks it.
 */
#ifndef URXE_VNIC_RECORD_RING_H
#define URXE_VNIC_RECORD_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VNIC_RECORD_BYTES (UINT64_C(32) << 20) /* a power of 2 */
#define VNIC_RECORD_START 4096                 /* offset of the bytes */
#define VNIC_RECORD_SIZE  (VNIC_RECORD_START + VNIC_RECORD_BYTES)

/* What the process says about itself; valid when `ready` is set. */
struct vnic_record_process {
	uint64_t engine_ns; /* the engine's time when the recording began... */
	uint64_t wall_ns;   /* ...and CLOCK_REALTIME at that moment, ns since 1970 */
	int32_t pid;
	int32_t error;    /* a negative errno value: the process cannot be recorded; else 0 */
	char program[32]; /* with its NUL */
	uint8_t mac[6];
	uint8_t reserved[2];
};

/* At the start of the memory; positions are free-running. */
struct vnic_record_ring {
	_Atomic uint64_t head;  /* bytes written */
	_Atomic uint32_t ready; /* 1 = `process` is set */
	_Atomic uint32_t ended; /* 1 = the writer writes no more */
	uint32_t reserved[12];
	_Atomic uint64_t tail; /* bytes read; written by the reader */
	uint64_t padding[7];
	struct vnic_record_process process;
};

/* The daemon: returns a descriptor of a new ring, or a negative errno value. */
int vnic_record_create(void);

/* The state of one side of a mapped ring, the writer or the reader. */
struct vnic_record_side {
	struct vnic_record_ring *ring; /* NULL: none */
	uint64_t at;                   /* own position */
};

/*
 * Maps the ring of the descriptor, which the caller still owns. Returns 0. -EPERM or -EINVAL: the
 * descriptor is not that of a ring. -ENOMEM.
 */
int vnic_record_open(struct vnic_record_side *side, int fd);
/* Ends the recording, and unmaps the ring. */
void vnic_record_close(struct vnic_record_side *side);
/* In a forked child, in place of vnic_record_close: replaces the ring by private memory. */
void vnic_record_isolate(const struct vnic_record_side *side);
/* In a forked child: unmaps the ring; the parent goes on. */
void vnic_record_abandon(struct vnic_record_side *side);

/*
 * Stores *process, and then sets `ready`. The writer calls this once, after it has written the
 * engine's state, or has failed to. The reader reads no byte before `ready` is set, so the ring
 * must have room for the whole state.
 */
void vnic_record_set_process(struct vnic_record_side *side,
			     const struct vnic_record_process *process);
/*
 * Copies n bytes into the ring if n + reserve bytes are free. False: fewer are free, or the
 * reader's position is invalid, and nothing was written. One thread at a time.
 */
bool vnic_record_write(struct vnic_record_side *side, const void *bytes, size_t n, size_t reserve);

/* The reader copies *process, and ends `program` with a NUL. False: `ready` is not set yet. */
bool vnic_record_get_process(const struct vnic_record_side *side,
			     struct vnic_record_process *process);
/* Whether the writer has ended the recording: the reader gets no further bytes than those in the
 * ring. A process that ends without closing its device does not end its recording. */
bool vnic_record_has_ended(const struct vnic_record_side *side);
/* Copies up to n bytes, and frees them. Returns their number; 0: none, or an invalid position. */
size_t vnic_record_read(struct vnic_record_side *side, void *bytes, size_t n);

#endif
