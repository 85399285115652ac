/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "objects/settle.h"

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include <hca/hca.h>
#include <samehost/peer.h>

#include "adapter/adapter.h"
#include "objects/verbs_mr.h"
#include "process/cancellation.h"
#include "process/emulated_fd.h"
#include "process/log.h"

/* Time in ns between two checks whether peers still copy, and the number of checks before a
 * warning: 1 s. */
#define SETTLE_PAUSE_NS 50000
#define SETTLE_PATIENCE 20000

void adapter_defer_destruction(void)
{
	if (adapter.hca.hca)
		hca_defer_destruction(adapter.hca.hca);
}

void adapter_unlock_settled(void)
{
	const struct timespec pause = {.tv_nsec = SETTLE_PAUSE_NS};

	if (adapter.hca.hca)
		hca_destroy_deferred(adapter.hca.hca);
	for (uint32_t looks = 0; !peers_settled(&adapter_peers); looks++) {
		adapter_unlock();
		if (looks == SETTLE_PATIENCE)
			log_warning("a peer has copied to or from our memory for long: the "
				    "memory cannot be given back yet");
		nanosleep(&pause, NULL);
		adapter_lock();
	}
	mr_free_released();
	adapter_unlock();
}

struct hca *adapter_allow_unlock(void)
{
	if (adapter.hca.hca)
		hca_allow_unlock(adapter.hca.hca);
	return adapter.hca.hca;
}

void adapter_refuse_copies(void)
{
	static atomic_bool withdrawn;
	int cancel;

	/* Takes effect also for an engine that the process creates later. */
	peers_begin_refusal(&adapter_peers);
	/* A child of vfork shares the flag with its parent, whose own first call still has to
	 * withdraw the rights of peers. */
	if (!fd_is_owner() || atomic_exchange(&withdrawn, true))
		return;
	cancel = cancellation_disable();
	adapter_lock();
	peers_refuse(&adapter_peers);
	adapter_unlock_settled();
	cancellation_restore(cancel);
}
