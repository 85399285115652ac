/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The HCA's protection domains. The engine knows a PD by its number only; each number that
 * offloaded objects use has one protection domain of the HCA. */
#ifndef URXE_VERBS_HCA_OBJECTS_HCA_PD_H
#define URXE_VERBS_HCA_OBJECTS_HCA_PD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "end.h"

struct hca;
struct ibv_pd;

struct hca_pd {
	struct hca *hca;
	struct ibv_pd *pd;
	uint32_t number; /* of the engine's PD */
	uint32_t users;  /* objects in it, without address handles, and the owner */
	bool owned;      /* until hca_pd_end() */
	struct hca_end end;
	LIST_ENTRY(hca_pd) link;
};
LIST_HEAD(hca_pd_list, hca_pd);

/* NULL: no offloaded object uses the PD. */
struct hca_pd *hca_pd_find(const struct hca *hca, uint32_t number);
/* Gets the domain for one more object. 0 or a negative errno value. */
int hca_pd_get(struct hca *hca, uint32_t number, struct hca_pd **pd);
/* An object is gone. After the last one the domain is destroyed. */
void hca_pd_put(struct hca_pd *pd);
/* hca_pd_end() for all PDs. */
void hca_pds_end_owned(struct hca *hca);

#endif
