/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that runs out at every place where the engine asks for some.
 *
 * meson.build puts this between a test and the engine (by the linker's --wrap),
 * and between the engine and the allocator. With URXE_TEST_NOMEM set, each call into the engine
 * that may allocate is made again and again: first its first allocation fails, then its second,
 * until the call gets through. A call that failed must return -ENOMEM and have changed nothing, so
 * the test goes on as if memory had never been short, and has to pass. At the end of the process
 * nothing may be left of what the engine allocated.
 *
 * Packets that come in cannot be refused like that. With URXE_TEST_NOMEM=packets
 * every second allocation that they ask for fails, too; they may then be lost.
 */
#include <errno.h>
#include <inttypes.h>
#include <search.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rxe/offload.h>
#include <rxe/rxe.h>
#include <rxe/state.h>

#include "require.h"

static struct {
	bool on;
	bool packets;      /* allocations for packets fail, too */
	bool input;        /* a call of urxe_input is in progress */
	bool fired;        /* an allocation has failed in this attempt */
	unsigned depth;    /* nesting of calls into the engine; callbacks may call it, too */
	uint32_t left;     /* allocations until the failing one; 0 = none fails */
	uint32_t asked;    /* allocations for packets */
	uint64_t injected; /* failures so far */
	uint64_t taken;    /* blocks that the engine has allocated */
	uint64_t live;     /* of these, blocks that it has not freed */
	void *blocks;      /* the unfreed blocks, in a tree of <search.h> */
} nomem;

__attribute__((constructor)) static void nomem_start(void)
{
	const char *mode = getenv("URXE_TEST_NOMEM");

	nomem.on = mode;
	nomem.packets = mode && !strcmp(mode, "packets");
}

/* A test in which no allocation failed proves nothing, so it fails. */
__attribute__((destructor)) static void nomem_finish(void)
{
	if (!nomem.on || (nomem.injected && !nomem.live))
		return;
	fprintf(stderr, "nomem: %" PRIu64 " failures, %" PRIu64 " blocks left\n", nomem.injected,
		nomem.live);
	_exit(1);
}

/* --- The allocator: functions that the engine calls in the place of libc's. */

void *nomem_malloc(size_t size);
void *nomem_calloc(size_t n, size_t size);
void *nomem_realloc(void *block, size_t size);
void nomem_free(void *block);

static int compare(const void *a, const void *b)
{
	return ((uintptr_t)a > (uintptr_t)b) - ((uintptr_t)a < (uintptr_t)b);
}

static bool packet_runs_out(void)
{
	return nomem.packets && ++nomem.asked % 2;
}

static bool runs_out(void)
{
	if (nomem.input)
		return packet_runs_out();
	if (!nomem.left || --nomem.left)
		return false;
	nomem.fired = true;
	nomem.injected++;
	return true;
}

static void *take(void *block)
{
	if (!nomem.on || !block)
		return block;
	require(tsearch(block, &nomem.blocks, compare));
	nomem.taken++;
	nomem.live++;
	return block;
}

static void give_back(void *block)
{
	if (nomem.on && block && tdelete(block, &nomem.blocks, compare))
		nomem.live--;
}

void *nomem_malloc(size_t size)
{
	return runs_out() ? NULL : take(malloc(size));
}

void *nomem_calloc(size_t n, size_t size)
{
	return runs_out() ? NULL : take(calloc(n, size));
}

void *nomem_realloc(void *block, size_t size)
{
	if (runs_out())
		return NULL;
	give_back(block);
	return take(realloc(block, size));
}

void nomem_free(void *block)
{
	give_back(block);
	free(block);
}

/* --- Calls into the engine. */

/* Called before attempt n of the outermost call. */
static void arm(uint32_t n)
{
	if (nomem.depth++)
		return;
	nomem.fired = false;
	nomem.left = nomem.on ? n : 0;
}

/* Whether the call must be repeated. */
static bool again(const char *call, int rc)
{
	if (--nomem.depth)
		return false;
	nomem.left = 0;
	if (nomem.fired && rc != -ENOMEM) {
		fprintf(stderr, "nomem: %s returned %d for want of memory\n", call, rc);
		abort();
	}
	return nomem.fired;
}

/*
 * The linker gives these names. A parameter list that differs from the engine's does not compile.
 */
#define WRAP(name, parameters, arguments)              \
	__typeof__(name) __real_##name, __wrap_##name; \
	int __wrap_##name parameters                   \
	{                                              \
		uint32_t n = 0;                        \
		int rc;                                \
                                                       \
		do {                                   \
			arm(++n);                      \
			rc = __real_##name arguments;  \
		} while (again(#name, rc));            \
		return rc;                             \
	}

WRAP(urxe_dev_create, (const struct urxe_dev_attr *attr, struct urxe_dev **dev), (attr, dev))
WRAP(urxe_mr_reg, (struct urxe_dev * dev, const struct urxe_mr_attr *attr, struct urxe_mr **mr),
     (dev, attr, mr))
WRAP(urxe_offload_mr_reg,
     (struct urxe_dev * dev, const struct urxe_mr_attr *attr, void *hca, uint32_t key,
      struct urxe_mr **mr),
     (dev, attr, hca, key, mr))
WRAP(urxe_offload_mr_rereg,
     (struct urxe_mr * *mr, const struct urxe_mr_attr *attr, void *hca, uint32_t key),
     (mr, attr, hca, key))
WRAP(urxe_mr_rereg, (struct urxe_mr * *mr, const struct urxe_mr_attr *attr), (mr, attr))
WRAP(urxe_mr_unmap, (struct urxe_mr * mr, const struct urxe_extent *bytes), (mr, bytes))
WRAP(urxe_mw_alloc, (struct urxe_dev * dev, const struct urxe_mw_attr *attr, struct urxe_mw **mw),
     (dev, attr, mw))
WRAP(urxe_fast_mr_alloc,
     (struct urxe_dev * dev, uint32_t pd, uint32_t max_extents, struct urxe_fast_mr **fast),
     (dev, pd, max_extents, fast))
WRAP(urxe_mcast_attach, (struct urxe_qp * qp, const struct urxe_gid *gid), (qp, gid))
WRAP(urxe_cq_create, (struct urxe_dev * dev, void *ctx, struct urxe_cq **cq), (dev, ctx, cq))
WRAP(urxe_srq_create,
     (struct urxe_dev * dev, const struct urxe_rq_attr *attr, struct urxe_rq **srq),
     (dev, attr, srq))
WRAP(urxe_srq_resize, (struct urxe_rq * srq, uint32_t max_wr), (srq, max_wr))
WRAP(urxe_post_recv, (struct urxe_rq * rq, const struct urxe_recv_wr *wr), (rq, wr))
WRAP(urxe_qp_create, (struct urxe_dev * dev, const struct urxe_qp_init *init, struct urxe_qp **qp),
     (dev, init, qp))
WRAP(urxe_qp_modify,
     (struct urxe_qp * qp, uint64_t now, const struct urxe_qp_attr *attr, uint32_t mask),
     (qp, now, attr, mask))
WRAP(urxe_state_save,
     (struct urxe_dev * dev, uint64_t now, const struct urxe_state_save *how, uint8_t **stream,
      size_t *length),
     (dev, now, how, stream, length))
WRAP(urxe_state_restore,
     (const struct urxe_dev_attr *attr, uint64_t now, const struct urxe_state_restore *how,
      const uint8_t *stream, size_t length, struct urxe_dev **dev),
     (attr, now, how, stream, length, dev))
WRAP(urxe_post_send, (struct urxe_qp * qp, const struct urxe_send_wr *wr), (qp, wr))
WRAP(urxe_post_malformed, (struct urxe_qp * qp, uint64_t wr_id, enum urxe_wc_status status),
     (qp, wr_id, status))

/* --- Calls of the packet path. */

__typeof__(urxe_input) __real_urxe_input, __wrap_urxe_input;
__typeof__(urxe_output) __real_urxe_output, __wrap_urxe_output;

void __wrap_urxe_input(struct urxe_dev *dev, uint64_t now, const struct urxe_frame *frames,
		       uint32_t n)
{
	nomem.input = true;
	__real_urxe_input(dev, now, frames, n);
	nomem.input = false;
}

/* Outgoing packets need no new allocation. */
uint32_t __wrap_urxe_output(struct urxe_dev *dev, uint64_t now, struct urxe_frame *frames,
			    uint32_t max)
{
	uint64_t taken = nomem.taken;
	uint32_t n;

	n = __real_urxe_output(dev, now, frames, max);
	require(nomem.taken == taken);
	return n;
}
