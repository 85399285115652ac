/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory regions: only this code turns a key and an address into a pointer. */
#ifndef URXE_MEMORY_MR_H
#define URXE_MEMORY_MR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rxe/rxe.h>

#include "objects/device.h"

/* Contiguous memory of a region; the piece ends at the offset of the next one. */
struct mr_piece {
	uint64_t offset; /* of the first byte, in the region */
	uint8_t *addr;   /* NULL: the memory is unmapped */
};

/* A piece that system calls in progress are unmapping; if the last of these calls fails, the piece
 * is mapped again. */
struct mr_held {
	uint8_t *addr;  /* address of the piece; NULL: no call is in progress, or the memory is
			   unmapped */
	uint32_t calls; /* number of calls in progress */
};

struct urxe_mr {
	struct urxe_dev *dev;
	uint32_t pd;
	uint32_t key;
	uint32_t access;
	void *hca;        /* the HCA's region with the same key; NULL: the engine's alone */
	uint32_t windows; /* number of windows bound to the region */
	uint64_t iova;
	uint64_t length;
	uint32_t n_pieces;
	struct mr_piece
		*pieces; /* in the order of offsets, none empty; one more entry marks the end */
	struct mr_held *held;       /* one per piece; NULL: no piece is held */
	struct mr_piece at_first[]; /* the pieces of the registration */
};

/* A memory window (memory/mw.h). Declared here because the checks of regions read windows. */
struct urxe_mw {
	struct urxe_dev *dev;
	uint32_t pd;
	uint32_t key;
	uint8_t type; /* enum urxe_mw_type */
	/* While the window is bound: */
	struct urxe_mr *mr; /* NULL = not bound */
	uint32_t access;
	uint64_t start;  /* address of its first byte in the key's address space */
	uint64_t offset; /* of its first byte in the region */
	uint64_t length;
	uint32_t qpn; /* type 2: the QP whose peer may use the window */
	LIST_ENTRY(urxe_mw) qp_link;
};

/* The window with the upper 24 bits of this key; NULL if there is none. */
static inline struct urxe_mw *mw_find(const struct urxe_dev *dev, uint32_t key)
{
	return idmap_find(&dev->mws, key >> 8);
}

/* Whether the window grants access to the peer of the QP. */
static inline bool mw_serves(const struct urxe_mw *mw, uint32_t qpn)
{
	return mw->mr && qpn && (mw->type == URXE_MW_TYPE_1 || mw->qpn == qpn);
}

/* A region for fast registrations (memory/fast_mr.h): each registration gives `mr` other memory,
 * and a key with other low 8 bits. */
struct urxe_fast_mr {
	struct urxe_dev *dev;
	uint32_t pd;
	uint32_t key; /* of the newest registration */
	uint32_t max_extents;
	bool registered;    /* false: the keys grant nothing */
	struct urxe_mr *mr; /* the region; not in dev->mrs */
};

/* The object that owns all keys with these upper 24 bits; NULL if there is none. */
static inline struct urxe_fast_mr *fast_mr_find(const struct urxe_dev *dev, uint32_t key)
{
	return idmap_find(&dev->fast_mrs, key >> 8);
}

/* The region with the key; NULL if there is none. */
static inline struct urxe_mr *mr_find(const struct urxe_dev *dev, uint32_t key)
{
	struct urxe_mr *mr = idmap_find(&dev->mrs, key);
	const struct urxe_fast_mr *fast;

	if (mr)
		return mr;
	fast = fast_mr_find(dev, key);
	return fast && fast->registered && fast->key == key ? fast->mr : NULL;
}

/* A range of one key's address space, and the access that the caller wants. */
struct mr_range {
	uint32_t qpn; /* of the QP whose peer wants access; 0 = local access, which no window grants
		       */
	uint32_t pd;
	uint32_t key;
	uint64_t addr;
	uint64_t length;
	uint32_t access; /* enum urxe_access that the key must grant; 0 = local read */
};

void mr_free(struct urxe_mr *mr);
/* Room for a region of so many extents; NULL: there is no memory. */
struct urxe_mr *mr_allocate(uint32_t n_extents);
/* Checks attributes for urxe_mr_reg: 0, -EINVAL or -EOPNOTSUPP. Does not look at attr->key. */
int mr_check_attr(const struct urxe_dev *dev, const struct urxe_mr_attr *attr);
/* Initializes a region of mr_allocate from the attributes; attr->key is its key. Does not add the
 * region to dev->mrs. */
void mr_fill(struct urxe_mr *mr, struct urxe_dev *dev, const struct urxe_mr_attr *attr);
/* Whether a system call in progress is unmapping a piece; such a call may still fail. */
bool mr_is_held(const struct urxe_mr *mr);
/* Publishes the region's rights for the copy transport. Does nothing if no part is mapped, if an
 * unmapping call is in progress, or if the region has too many pieces. */
void mr_publish(const struct urxe_mr *mr);
static inline bool mr_is_one_piece(const struct urxe_mr *mr)
{
	return mr->length && mr->n_pieces == 1 && mr->pieces[0].addr;
}

/* Whether [addr, addr + length) lies in [start, start + size); *offset becomes addr - start. */
bool mr_within(uint64_t start, uint64_t size, uint64_t addr, uint64_t length, uint64_t *offset);
/*
 * A free key: a consecutive number and 8 random bits, so that a stale key rarely is a valid one
 * (IBA 10.6.2.2). After a run of keys in use the numbers continue at a random one. `whole`: all 256
 * keys with the same upper bits are free.
 */
uint32_t mr_new_key(struct urxe_dev *dev, bool whole);
/* Whether any key with the same upper 24 bits is in use. */
bool mr_index_taken(const struct urxe_dev *dev, uint32_t key);

/*
 * Appends the range's contiguous parts to `extents`, of which *n are in use, at most max. False:
 * the range is not granted, not mapped, or has too many parts.
 */
bool mr_list_extents(const struct urxe_dev *dev, const struct mr_range *range,
		     struct urxe_extent *extents, uint32_t max, uint32_t *n);
/* Whether the key grants the range. */
bool mr_check(const struct urxe_dev *dev, const struct mr_range *range);

/*
 * Copies to a range; mr_read copies from one. Both check the range, because a region may be
 * deregistered between two packets of one message. False: the range is not granted, or its memory
 * is unmapped; a part may have been copied.
 */
bool mr_write(struct urxe_dev *dev, const struct mr_range *range, const uint8_t *src);
/* Copies from a range; results as of mr_write. */
bool mr_read(struct urxe_dev *dev, const struct mr_range *range, uint8_t *dst);

/* Flushes the range to the placement of range->access: globally visible, or persistent. False: the
 * range is not granted, its memory is unmapped, or urxe_ops.persist failed. */
bool mr_flush(struct urxe_dev *dev, const struct mr_range *range);
/* Extends the range to all bytes that its key grants; false: no such key. */
bool mr_whole(const struct urxe_dev *dev, struct mr_range *range);

enum mr_atomic_kind { MR_FETCH_ADD, MR_COMPARE_SWAP, MR_STORE };

struct mr_atomic {
	enum mr_atomic_kind kind;
	uint64_t operand; /* summand, or new value */
	uint64_t compare;
	uint64_t original; /* value before; not set by MR_STORE */
};

/* Executes an atomic operation on the 8 bytes of the range. False: they are not granted, not in one
 * piece, not aligned in memory, or unmapped; nothing has changed. */
bool mr_atomic(struct urxe_dev *dev, const struct mr_range *range, struct mr_atomic *op);

#endif
