/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Checks the source of frames from processes: may the process at a port send this frame? forward.c
 * calls antispoof_check for each of them, so that no process sends with another process's QPN, or
 * with an address that the host does not have.
 */
#ifndef URXE_URXED_SWITCH_ANTISPOOF_H
#define URXE_URXED_SWITCH_ANTISPOOF_H

#include "urxed/hostnet/host.h"
#include "urxed/session/qpn_lease.h"
#include "urxed/switch/classify.h"
#include "urxed/switch/switch_port.h"
#include "urxed/switch/tables/remote_qp_acl.h"

/* The tables that antispoof_check reads. */
struct antispoof_rules {
	const struct host *host;
	const struct lease_table *leases;
	const struct remote_qp_acl *remotes;
};

/* Returns the reason to drop a frame from the process at port `from`, or SWITCH_NO_DROP. */
enum switch_drop antispoof_check(const struct antispoof_rules *rules,
				 const struct switch_port *from, const struct frame_class *s);

#endif
