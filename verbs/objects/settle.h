/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Withdrawal of rights to the process's memory: the wait for peers that still copy by them. */
#ifndef URXE_VERBS_OBJECTS_SETTLE_H
#define URXE_VERBS_OBJECTS_SETTLE_H

/*
 * After port_lock(): objects that the engine destroys until port_unlock_settled() end at the HCA
 * there, without the lock, because an HCA takes long for some.
 */
void port_collect_ends(void);
/*
 * Releases port.lock and waits until no peer copies any more by rights that were withdrawn, and the
 * HCA has ended the objects since port_collect_ends(). At the end of each call that withdraws
 * rights to memory.
 */
void port_unlock_settled(void);
/* As peers_refuse. Any thread; port.lock must not be held. */
void port_refuse_copies(void);

#endif
