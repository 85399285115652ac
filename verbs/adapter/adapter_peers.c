/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The peers of the process: other processes of this host (samehost/peer.h). */
#include <samehost/peer.h>

#include "adapter/adapter.h"
#include "process/log.h"

struct peers adapter_peers;

static struct peer *find_peer(void *ctx, const uint8_t mac[6], uint32_t qpn)
{
	(void)ctx;
	return tx_peer(&adapter.tx, mac, qpn);
}

/* peers_ops.before_call, before a long system call: if this process holds the lock word of a peer's
 * inbox, sends its frames there and releases the word, for which other senders would wait. */
static void unlock_inbox(void *ctx)
{
	(void)ctx;
	tx_unlock_inbox(&adapter.tx);
}

static void log_exclusion(void *ctx, int32_t pid)
{
	(void)ctx;
	log_warning("process %d marks a copy in our memory and makes none: it gets packets", pid);
}

static bool has_block(void *ctx, uint32_t block)
{
	const struct lease_block *found = adapter.leases.by_qpn[block];

	(void)ctx;
	return found && !found->unleased;
}

void adapter_init_peers(void)
{
	static const struct peers_ops ops = {
		.find = find_peer,
		.before_call = unlock_inbox,
		.excluded = log_exclusion,
		.has_block = has_block,
	};

	peers_init(&adapter_peers, &ops, NULL);
}
