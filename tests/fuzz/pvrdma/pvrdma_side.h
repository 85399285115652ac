/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For fuzz targets of PVRDMA: a device with the objects that an honest driver made, and the actions
 * of a hostile guest, which the bytes of the input choose.
 */
#ifndef URXE_FUZZ_PVRDMA_SIDE_H
#define URXE_FUZZ_PVRDMA_SIDE_H

#include "pvrdma_driver.h"
#include "script.h"

#define SIDE_CQE    16
#define SIDE_WR     8
#define SIDE_VA     UINT64_C(0x7f0000000100)
#define SIDE_LENGTH 6000u
#define SIDE_ACCESS 15u
#define SIDE_RC     2
#define SIDE_QPS    3 /* RC with a receive queue, RC with the SRQ; the last is for datagrams */

struct side {
	struct side *peer; /* that the RC queue pairs are connected to; may be the side itself */
	struct script *in;
	void *uar; /* doorbells are stores there, PVRDMA_UAR_SIZE bytes; NULL: writes to BAR2 */
	struct guest guest;
	struct cq cq;
	struct srq srq;
	struct qp qps[SIDE_QPS];
	struct buffer buffer;
	struct pages spare; /* for queues that actions create */
	uint32_t dma_key;   /* of all memory */
	uint32_t fast_key;
};

/* The device, its guest memory, which stays for the next call, and its objects; the queue pairs are
 * in RESET. */
void side_open(struct side *s, uint8_t id);
/* Frees the lists of pages. The device and its memory stay. */
void side_close(struct side *s);
/* The driver resets the device, whose memory is cleared, and makes the objects anew. */
void side_restart(struct side *s);
/* The queue pairs of the side, all in RESET, go to RTS. */
void side_connect(struct side *s);
/* The extra region of the guest, for reading only, until the end. Again after side_open and
 * side_restart: the key of all memory, which permits writing, has a hole there. */
void side_add_read_only_memory(struct side *s);
/* An honest WRITE must reach the peer. */
void side_check_write(struct side *s);
/* Restarts the side, checks that a WRITE works, and closes the side. */
void side_finish(struct side *s);

/* A value that matters: a key, an address, a limit. */
uint64_t side_value(struct side *s);
/* Overwrites some words with values that matter. */
void side_patch(struct side *s, void *bytes, size_t size);

/* Actions of the guest. */
void side_write_register(struct side *s);
void side_read_register(struct side *s);
void side_ring_doorbell(struct side *s);
void side_send_command(struct side *s);
void side_post_request(struct side *s);
void side_post_receive(struct side *s);
/* A word in a page that the device reads or writes. */
void side_scribble(struct side *s);
void side_consume_completions(struct side *s);
/* The hypervisor adds or removes memory, or shortens the file of the extra region. */
void side_change_memory(struct side *s);
/* The device loses pages that were not there when it used them, as the vfio-user server sees to. */
void side_check_memory(struct side *s);
/* The port's link goes down or up, or the driver permits or forbids access to memory. */
void side_change_link(struct side *s);

/* Moves frames between the side and its peer, for a limited number of rounds. */
void side_run(struct side *s);
/* The same at the time of the next deadline of both. */
void side_pass_time(struct side *s);

#endif
