/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The HCA of the host in the device process of a virtual machine (docs/hca.md): opens the one that
 * urxed names, gives it to PVRDMA, and passes its completions on. vm.c calls it, in the thread that
 * runs the engine. Further threads only create address handles (address_handles.h).
 */
#ifndef URXE_VM_HOST_MACHINE_HCA_H
#define URXE_VM_HOST_MACHINE_HCA_H

#include <stdbool.h>
#include <stdint.h>

#include <hca/hca.h>
#include <hca/way.h>
#include <pvrdma/pvrdma.h>

#include "vm/host/address_handles.h"
#include "vm/host/machine_peers.h"
#include "vm/host/machine_session.h"

struct machine_hca {
	struct pvrdma *dev;
	const struct vm_session *session;
	const struct machine_peers *peers;
	enum hca_way way;
	int epoll_fd;         /* readable when machine_hca_event has something to do */
	struct hca *hca;      /* NULL: none */
	uint64_t completions; /* hca_completions() at the last machine_hca_poll */
	struct address_handles handles;
	bool has_prepared; /* a thread of `handles` has ended since the last machine_hca_poll */
	/* The HCA that urxed named last, and vm_session.attachments at that time. */
	struct vnic_attach_hca wanted;
	uint32_t attachment;
	struct hca_retry retry; /* when to try to open `wanted` again, by now_ns() */
	struct hca_owner owner;
	struct pvrdma_hca of_device; /* for pvrdma_set_hca */
};

/*
 * Opens the HCA that urxed names, if it names one. *h must not move until machine_hca_close.
 * Returns 0, also without an HCA, or a negative errno value of epoll_create1(2) or pipe(2).
 */
int machine_hca_open(struct machine_hca *h, struct pvrdma *dev, const struct vm_session *session,
		     const struct machine_peers *peers, enum hca_way way);
/* Call it while the PVRDMA device still exists. Accepts a zeroed structure. */
void machine_hca_close(struct machine_hca *h);

/*
 * Closes the HCA if it is dead, or urxed has named another one or none, and opens the one that
 * urxed has named since the last call. Repeats an attempt to open that failed for want of
 * descriptors or memory. Follows the state of the HCA's port. May block in libibverbs. `now`: as
 * now_ns().
 */
void machine_hca_follow(struct machine_hca *h, uint64_t now);
/* When machine_hca_follow will open the HCA again, ns; UINT64_MAX: no attempt is due. */
static inline uint64_t machine_hca_deadline(const struct machine_hca *h)
{
	return hca_retry_due(&h->retry);
}
/* Passes completions to the engine, and tells PVRDMA of ended threads of `handles`. True: there
 * were some, so PVRDMA has to be run. */
bool machine_hca_poll(struct machine_hca *h, uint64_t now);
/*
 * Before a sleep: the next completion makes epoll_fd readable. True: the process must not sleep,
 * because completions were there and PVRDMA has to be run, or because the HCA is dead and
 * machine_hca_follow has to close it.
 */
bool machine_hca_arm(struct machine_hca *h, uint64_t now);
/* Call it when epoll_fd is readable: handles the events of the HCA and of `handles`. */
void machine_hca_event(struct machine_hca *h);

/* Why the HCA executes that queue pair of PVRDMA, or does not; NULL: no HCA is open. */
const char *machine_hca_reason(const struct machine_hca *h, const struct urxe_qp *qp);

#endif
