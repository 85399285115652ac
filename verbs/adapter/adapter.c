/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "adapter/adapter.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <string.h>

#include "process/run_dir.h"

struct adapter adapter;

/* An error-checking mutex: if a signal handler forks while its own thread holds the lock, the
 * handlers of fork get EDEADLK instead of waiting for ever. */
pthread_mutex_t adapter_open_lock = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
pthread_mutex_t adapter_lease_lock = PTHREAD_MUTEX_INITIALIZER;

__thread bool adapter_inside __attribute__((tls_model("initial-exec")));
void (*adapter_unlock_orphaned)(void);
uint32_t adapter_fork_generation;

static _Atomic uint32_t generation;
static atomic_bool died; /* the device has died, and no program has listed the devices since */

void adapter_note_death(bool dead)
{
	atomic_store(&died, dead);
}

uint32_t adapter_list_generation(void)
{
	return atomic_exchange(&died, false) ? atomic_fetch_add(&generation, 1) + 1
					     : atomic_load(&generation);
}

uint64_t adapter_counter(enum vnic_bypass_counter counter)
{
	switch (counter) {
	case VNIC_BYPASS_LOCK_WAITS: return adapter.lock.waits;
	case VNIC_BYPASS_LOCK_WAIT_US: return adapter.lock.waited_ns / 1000;
	case VNIC_BYPASS_PAGE_FAULTS: return adapter.page_faults;
	default: return adapter.tx.counters[counter];
	}
}

static bool is_ipv4(const uint8_t gid[16])
{
	return IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)gid);
}

static bool is_group(const uint8_t gid[16])
{
	return is_ipv4(gid) ? gid[12] >> 4 == 0xe : gid[0] == 0xff;
}

int port_check_source(uint32_t index, const uint8_t dgid[16])
{
	struct vnic_attach_gid gid;

	if (index >= VNIC_ATTACH_GIDS)
		return -EINVAL;
	adapter_lock();
	gid = adapter.welcome.port.gids[index];
	adapter_unlock();
	if (!gid.valid)
		return -ENODATA;
	return gid.v1 || is_group(dgid) || is_ipv4(gid.raw) == is_ipv4(dgid) ? 0 : -EINVAL;
}

void adapter_guid(uint8_t guid[8])
{
	vnic_node_guid(adapter.welcome.mac, strcmp(run_dir_uverbs_name(), VNIC_UVERBS_NAME) != 0,
		       guid);
}

enum urxe_mtu port_mtu(void)
{
	const uint32_t overhead = URXE_MAX_OVERHEAD - 14 - 4; /* from IP header to ICRC */
	enum urxe_mtu mtu = URXE_MTU_4096;

	while (mtu > URXE_MTU_256 && (128u << mtu) + overhead > adapter.welcome.port.link_mtu)
		mtu--;
	return mtu;
}
