/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The queue pairs, regions and counters of the machine, for `urxe show` (state_document.h). */
#ifndef URXE_VM_HOST_MACHINE_STATE_H
#define URXE_VM_HOST_MACHINE_STATE_H

#include <pvrdma/pvrdma.h>

#include "vm/host/machine_hca.h"
#include "vm/host/machine_peers.h"
#include "vm/host/switch_link.h"

/*
 * Sends the state on `socket`, and closes the socket. Never blocks. `name` is the name of the
 * process in the state: "vm:NAME" or "vm".
 */
void vm_state_send(const struct pvrdma *dev, const struct machine_peers *peers,
		   const struct machine_hca *hca, const struct switch_link *link, const char *name,
		   int socket);

#endif
