/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The way of a queue pair: whether the HCA or the engine executes it, and why. In a program,
 * requests/hca_choice.c and uverbs/cmd_modify_qp.c choose the way; in a virtual machine,
 * tools/vm/host/machine_hca.c.
 */
#ifndef URXE_VERBS_HCA_WAY_H
#define URXE_VERBS_HCA_WAY_H

#include <stdbool.h>

/* The user's choice (--way, URXE_WAY). */
enum hca_way { HCA_WAY_AUTO, HCA_WAY_HCA, HCA_WAY_ENGINE };

/* Sets *way for "auto", "hca" or "engine". False: `text` is none of these. */
bool hca_way_read(const char *text, enum hca_way *way);

/* Why the HCA or the engine executes a queue pair. */
enum way_reason {
	WAY_NO_HCA,         /* engine: urxe0 has no HCA, or the HCA does not have the queue pair */
	WAY_OF_DEVICE,      /* HCA, if it has the queue pair, which is UD or has an SRQ */
	WAY_OTHER_HOST,     /* HCA: the daemon or device process does not know the peer as one of
			       this host that the engine can reach */
	WAY_SAME_HOST,      /* engine: the peer is on this host, and of this user */
	WAY_FORCED,         /* HCA: the user has chosen it */
	WAY_ADDRESS,        /* engine: the HCA lacks the source GID, or its MTU is too small */
	WAY_NUMBER_UNKNOWN, /* HCA: the daemon does not know the QPN that the HCA has chosen */
	WAY_KERNEL,         /* engine: the kernel of a virtual machine uses the queue pair */
	WAY_REGION          /* engine: the PD of the queue pair has a region that the HCA lacks */
};

/* The reason in words, for `urxe show transport`. */
const char *way_reason_text(enum way_reason reason);

#endif
