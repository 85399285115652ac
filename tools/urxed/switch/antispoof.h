/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whether a frame is the sender's to send: no process speaks for the host with an
 * address that is not the host's, nor for another process.
 */
#ifndef URXE_URXED_SWITCH_ANTISPOOF_H
#define URXE_URXED_SWITCH_ANTISPOOF_H

#include "urxed/hostnet/host.h"
#include "urxed/session/qpn_lease.h"
#include "urxed/switch/classify.h"
#include "urxed/switch/port.h"
#include "urxed/switch/remote_qp_acl.h"

/* What tells who may say what. */
struct antispoof_rules {
	const struct host *host;
	const struct lease_table *leases;
	const struct remote_qp_acl *remotes;
};

/* Why the process at a port may not send a frame; SWITCH_NO_DROP where it may. */
enum switch_drop antispoof_check(const struct antispoof_rules *rules,
				 const struct switch_port *from, const struct frame_class *s);

#endif
