/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/privilege/privilege.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "urxed/privilege/capabilities.h"
#include "urxed/privilege/syscall_filter.h"
#include "urxed/privilege/thread_call.h"

/* The capabilities with which kernel_sync.h opens an uplink again when its interface returns or
 * changes. Uplinks that match no row need no capability. */
static const struct {
	const char *kind;
	const char *option; /* the row is only for uplinks with this option; "" = for all */
	uint64_t capabilities;
} rows[] = {
	/* For a packet socket, and for the interface's multicast groups, promiscuous mode and
	 * VLANs. */
	{"af_packet:", "", CAPABILITY(CAP_NET_RAW) | CAPABILITY(CAP_NET_ADMIN)},
	/* For a packet socket for ARP and ND, and its settings. The XDP program and its map need
	 * CAP_BPF, and before Linux 5.8 CAP_SYS_ADMIN. */
	{"af_xdp:", "",
	 CAPABILITY(CAP_NET_RAW) | CAPABILITY(CAP_NET_ADMIN) | CAPABILITY(CAP_BPF) |
		 CAPABILITY(CAP_SYS_ADMIN) | CAPABILITY(CAP_IPC_LOCK)},
	{"tap:", "", CAPABILITY(CAP_NET_ADMIN)},
	/*
	 * Each datagram to a socket in another user's directory needs CAP_DAC_OVERRIDE. Without the
	 * option dgram, a qemu: port uses vm_socket.h instead. The process of a vhost: port
	 * connects itself, with the rights that vhost_spawner.h gives to it.
	 */
	{"qemu:", ",dgram", CAPABILITY(CAP_DAC_OVERRIDE)},
	/* For any driver of DPDK: hot plug and reset of PCI devices need the same capabilities as
	 * their start. */
	{"dpdk:", "", ~UINT64_C(0) & ~CAPABILITY(CAP_SYS_PTRACE)},
};

static uint64_t needed_by(const char *uplink)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strncmp(uplink, rows[i].kind, strlen(rows[i].kind)) &&
		    strstr(uplink, rows[i].option))
			return rows[i].capabilities;
	return 0;
}

uint64_t privilege_needed(const char *const *uplinks, uint32_t n)
{
	uint64_t all = 0;

	while (n--)
		all |= needed_by(uplinks[n]);
	return all;
}

static uint64_t kept;

static int keep_capabilities(void)
{
	return capabilities_keep(kept);
}

int privilege_drop(uint64_t needed, char error[PRIVILEGE_ERROR])
{
	int rc;

	kept = needed;
/* ThreadSanitizer delays a thread's signals until one of the thread's system calls returns, so
 * thread_call_all would time out. */
#ifdef __SANITIZE_THREAD__
	rc = keep_capabilities();
#else
	rc = thread_call_all(keep_capabilities);
#endif
	if (!rc && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		rc = -errno;
	if (rc) {
		snprintf(error, PRIVILEGE_ERROR, "cannot drop privileges: %s", strerror(-rc));
		return rc;
	}
	rc = syscall_filter_install();
	if (rc)
		snprintf(error, PRIVILEGE_ERROR,
			 "cannot restrict its own system calls, which needs seccomp(2): %s",
			 strerror(-rc));
	return rc;
}
