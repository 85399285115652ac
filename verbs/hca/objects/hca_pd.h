/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The HCA's protection domains. The engine knows a PD by its number only; each number that
 * offloaded objects use has one protection domain of the HCA. */
#ifndef URXE_VERBS_HCA_OBJECTS_HCA_PD_H
#define URXE_VERBS_HCA_OBJECTS_HCA_PD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "destruction.h"

struct hca;
struct ibv_pd;

struct hca_pd {
	struct hca *hca;
	struct ibv_pd *pd;
	uint32_t number; /* the engine's number of the PD */
	/* Objects in it, and one while `owned`. An address handle counts only from hca_ah_begin()
	 * to hca_ah_end(), and while it is being destroyed. */
	uint32_t holds;
	bool owned; /* hca_pd_add() has added it; until hca_pd_end() or hca_detach() */
	struct hca_destruction destruction;
	LIST_ENTRY(hca_pd) link;
};
LIST_HEAD(hca_pd_list, hca_pd);

/* The HCA's domain of the engine's PD of that number; NULL: there is none. */
struct hca_pd *hca_pd_find(const struct hca *hca, uint32_t number);
/* Finds or allocates the domain, and counts one more object in it. May wait (wait.h). 0 or a
 * negative errno value. */
int hca_pd_get(struct hca *hca, uint32_t number, struct hca_pd **pd);
/* An object is gone: counts one hold less. After the last one the domain is deallocated. */
void hca_pd_put(struct hca_pd *pd);
/* Does hca_pd_end() for all PDs. */
void hca_pds_end_owned(struct hca *hca);

#endif
