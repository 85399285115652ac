/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "adapter/adapter.h"

#include <string.h>

#include "process/run_dir.h"

struct adapter adapter;

/* Error-checking: a fork in a signal handler finds out whether its own thread holds the lock. */
pthread_mutex_t adapter_open_lock = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
pthread_mutex_t adapter_lease_lock = PTHREAD_MUTEX_INITIALIZER;

__thread bool adapter_inside __attribute__((tls_model("initial-exec")));
void (*adapter_unlock_orphaned)(void);
uint32_t adapter_forks;

uint64_t adapter_counter(enum vnic_bypass_counter counter)
{
	switch (counter) {
	case VNIC_BYPASS_LOCK_WAITS: return adapter.lock.waits;
	case VNIC_BYPASS_LOCK_WAIT_US: return adapter.lock.waited_ns / 1000;
	case VNIC_BYPASS_PAGE_FAULTS: return adapter.page_faults;
	default: return adapter.tx.counters[counter];
	}
}

bool port_gid_valid(uint32_t index)
{
	bool valid;

	adapter_lock();
	valid = index < VNIC_ATTACH_GIDS && adapter.welcome.port.gids[index].valid;
	adapter_unlock();
	return valid;
}

void adapter_guid(uint8_t guid[8])
{
	vnic_node_guid(adapter.welcome.mac, strcmp(run_dir_uverbs_name(), VNIC_UVERBS_NAME) != 0,
		       guid);
}

enum urxe_mtu port_mtu(void)
{
	const uint32_t overhead = URXE_MAX_OVERHEAD - 14 - 4; /* of the Ethernet payload */
	enum urxe_mtu mtu = URXE_MTU_4096;

	while (mtu > URXE_MTU_256 && (128u << mtu) + overhead > adapter.welcome.port.link_mtu)
		mtu--;
	return mtu;
}
