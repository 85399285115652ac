/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory regions: the one place that turns a key and an address into a pointer. */
#ifndef URXE_MR_H
#define URXE_MR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rxe/rxe.h>

#include "objects/device.h"

/* Where bytes of a region lie, from one of them up to the next piece. */
struct mr_piece {
	uint64_t offset; /* of the first, in the region */
	uint8_t *addr;   /* NULL: it is there no longer */
};

/* A piece that calls are taking, which may yet fail and leave it. */
struct mr_held {
	uint8_t *addr; /* where the piece lies; NULL: nobody takes it, or it has gone for good */
	uint32_t calls;
};

struct urxe_mr {
	struct urxe_dev *dev;
	uint32_t pd;
	uint32_t key;
	uint32_t access;
	uint32_t windows; /* bound to it */
	uint64_t iova;
	uint64_t length;
	uint32_t n_pieces;
	struct mr_piece *pieces;    /* by offset, none empty; one more is the end */
	struct mr_held *held;       /* one to a piece; NULL: none was ever taken */
	struct mr_piece at_first[]; /* those that it was registered with */
};

/* A memory window (objects/mw.h). It stands here because a region's checks look into windows. */
struct urxe_mw {
	struct urxe_dev *dev;
	uint32_t pd;
	uint32_t key;
	uint8_t type; /* enum urxe_mw_type */
	/* While it is bound: */
	struct urxe_mr *mr; /* NULL = it is not */
	uint32_t access;
	uint64_t start;  /* address of its first byte in the key's address space */
	uint64_t offset; /* of its first byte in the region */
	uint64_t length;
	uint32_t qpn; /* type 2: the QP that it serves */
	LIST_ENTRY(urxe_mw) qp_link;
};

/* The window whose key has the upper 24 bits of this one; NULL where there is none. */
static inline struct urxe_mw *mw_find(const struct urxe_dev *dev, uint32_t key)
{
	return idmap_find(&dev->mws, key >> 8);
}

/* Whether the peer of the QP may come in through the window. */
static inline bool mw_serves(const struct urxe_mw *mw, uint32_t qpn)
{
	return mw->mr && qpn && (mw->type == URXE_MW_TYPE_1 || mw->qpn == qpn);
}

/* A range of one key's address space, and for what it is wanted. */
struct mr_range {
	uint32_t qpn; /* of the QP whose peer asks; 0 = its owner does, whom no window serves */
	uint32_t pd;
	uint32_t key;
	uint64_t addr;
	uint64_t length;
	uint32_t access; /* enum urxe_access that the region must grant; 0 = local read */
};

void mr_free(struct urxe_mr *mr);
/* Publishes the region's rights for the direct transport, if it is one piece of memory. */
void mr_publish(const struct urxe_mr *mr);
static inline bool mr_is_one_piece(const struct urxe_mr *mr)
{
	return mr->length && mr->n_pieces == 1 && mr->pieces[0].addr;
}

/* Whether [addr, addr + length) lies in [start, start + size); *offset is addr's place in it. */
bool mr_within(uint64_t start, uint64_t size, uint64_t addr, uint64_t length, uint64_t *offset);
/* A key that names nothing: a running number and, against stale ones, 8 bits of noise (IBA
 * 10.6.2.2). `whole`: none of the 256 keys with its upper bits does. */
uint32_t mr_new_key(struct urxe_dev *dev, bool whole);
/* Whether the upper 24 bits of the key are in use. */
bool mr_index_taken(const struct urxe_dev *dev, uint32_t key);

/* Where the range is in the process's own address space; NULL where it is not granted, or not in
 * one piece. */
uint8_t *mr_address(const struct urxe_dev *dev, const struct mr_range *range);
/* Whether the key grants the range. */
bool mr_check(const struct urxe_dev *dev, const struct mr_range *range);

/*
 * Copies to or from a range, which is checked again: a region may go between
 * two packets of one message. False where it is not granted, or the memory is not
 * there; then what was copied so far is undefined.
 */
bool mr_write(struct urxe_dev *dev, const struct mr_range *range, const uint8_t *src);
/* *crc goes on with what was copied, by urxe_ops.copy_crc; NULL: nobody wants it. */
bool mr_read(struct urxe_dev *dev, const struct mr_range *range, uint8_t *dst, uint32_t *crc);

/* Makes what the range holds reach as far as range->access says: visible to all, or lasting. False
 * where it could not; the range was granted. */
bool mr_flush(struct urxe_dev *dev, const struct mr_range *range);
/* Extends the range to all that its key covers; false where it is none. */
bool mr_whole(const struct urxe_dev *dev, struct mr_range *range);

enum mr_atomic_kind { MR_FETCH_ADD, MR_COMPARE_SWAP, MR_STORE };

struct mr_atomic {
	enum mr_atomic_kind kind;
	uint64_t operand; /* what is added, or put there */
	uint64_t compare;
	uint64_t original; /* what was there before; not of MR_STORE */
};

/* An atomic operation on the range's 8 bytes. False where they are not granted, not in one piece,
 * or not there; nothing is changed then. */
bool mr_atomic(struct urxe_dev *dev, const struct mr_range *range, struct mr_atomic *op);

#endif
