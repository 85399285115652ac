/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The lock of an inbox: the lock word of layout.h. */
#ifndef URXE_VNIC_INBOX_LOCK_H
#define URXE_VNIC_INBOX_LOCK_H

#include "layout.h"
#include "shared.h"

/*
 * How often a sender looks at a held lock before the lock counts as busy. That takes about 1 us:
 * longer than copies of a few small frames, shorter than a burst of large frames or a reservation.
 */
#define INBOX_LOCK_SPINS 64

/* Pauses for 10 to 50 ns. On arm64 an isb takes that long, a yield takes no time. */
static inline void inbox_spin_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" : : : "memory");
#endif
}

/* Takes the lock for the process with the number `self`. VNIC_OUTBOX_BUSY: it was held at
 * INBOX_LOCK_SPINS looks; VNIC_OUTBOX_CLOSED: the inbox is closed. */
static inline enum vnic_outbox_status inbox_lock(struct inbox_memory *memory, uint32_t self)
{
	for (int i = 0; i < INBOX_LOCK_SPINS; i++) {
		uint32_t seen = vnic_load(&memory->lock);

		if (seen == INBOX_CLOSED)
			return VNIC_OUTBOX_CLOSED;
		/* Acquire: sees the writes of the previous holder of the lock. */
		if (seen == INBOX_FREE &&
		    __atomic_compare_exchange_n(&memory->lock, &seen, self, false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return VNIC_OUTBOX_OK;
		inbox_spin_pause();
	}
	return VNIC_OUTBOX_BUSY;
}

/* Compare-and-exchange, not a plain store: the receiver or the daemon may have set the word to
 * CLOSED, which must stay. */
static inline void inbox_unlock(struct inbox_memory *memory, uint32_t holder)
{
	__atomic_compare_exchange_n(&memory->lock, &holder, INBOX_FREE, false, __ATOMIC_RELEASE,
				    __ATOMIC_RELAXED);
}

#endif
