/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For commands that withdraw rights to the process's memory: waits for peers that still copy by
 * these rights, and for the HCA.
 */
#ifndef URXE_VERBS_OBJECTS_SETTLE_H
#define URXE_VERBS_OBJECTS_SETTLE_H

struct hca;

/*
 * Call it after adapter_lock(). Objects that the engine destroys from now on are destroyed at the
 * HCA by adapter_unlock_settled(), without the lock, because an HCA takes long for some.
 */
void adapter_defer_destruction(void);
/*
 * Destroys at the HCA the objects deferred since adapter_defer_destruction(). Waits until no peer
 * copies any more by rights that were withdrawn. Releases adapter.lock, also during the waits. Each
 * call that withdraws rights to memory ends with this function, in place of adapter_unlock().
 */
void adapter_unlock_settled(void);
/*
 * With adapter.lock: from now on the engine's operations that rxe/offload.h marks "waits" release
 * adapter.lock while the HCA executes them, until hca_forbid_unlock(). The caller has counted
 * itself in object.users of the objects, so that no command destroys them. Returns the HCA; NULL:
 * there is none, and the caller does not call hca_forbid_unlock(). command_forbid_unlock()
 * (uverbs/uverbs_command.h) accepts the HCA and NULL.
 */
struct hca *adapter_allow_unlock(void);
/*
 * Ends the copy transport of this process for good. The first call in a process waits until no peer
 * copies any more. For a program that registers memory with userfaultfd(2): a peer's copy would
 * wait for the program's handler of page faults (peers_begin_refusal in samehost/peer.h). Any
 * thread; adapter.lock must not be held.
 */
void adapter_refuse_copies(void);

#endif
