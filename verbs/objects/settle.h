/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Withdrawal of rights to the process's memory: the wait for peers that still copy by them. */
#ifndef URXE_VERBS_OBJECTS_SETTLE_H
#define URXE_VERBS_OBJECTS_SETTLE_H

struct hca;

/*
 * After adapter_lock(): objects that the engine destroys until adapter_unlock_settled() end at the
 * HCA there, without the lock, because an HCA takes long for some.
 */
void adapter_collect_ends(void);
/*
 * Releases adapter.lock and waits until no peer copies any more by rights that were withdrawn, and
 * the HCA has ended the objects since adapter_collect_ends(). At the end of each call that
 * withdraws rights to memory.
 */
void adapter_unlock_settled(void);
/*
 * With adapter.lock: until adapter_keep_lock(), the engine's operations that rxe/offload.h marks
 * release adapter.lock while the HCA executes them. The caller has marked the objects as used, so
 * that no command destroys them. Returns the HCA, for adapter_keep_lock(); NULL: none.
 */
struct hca *adapter_free_lock(void);
/* With adapter.lock, which it releases for a moment if the HCA has gone. */
void adapter_keep_lock(struct hca *hca);
/* As peers_refuse. Any thread; adapter.lock must not be held. */
void adapter_refuse_copies(void);

#endif
