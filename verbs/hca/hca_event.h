/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion events and asynchronous events of the HCA. For hca.c. */
#ifndef URXE_VERBS_HCA_HCA_EVENT_H
#define URXE_VERBS_HCA_HCA_EVENT_H

#include <stdbool.h>

struct hca;

/* Handle the events that wait, at most 64 in each call. Neither function blocks. */
void hca_handle_comp_events(struct hca *hca);
void hca_handle_async_events(struct hca *hca);
/* Passes the completions of all CQs to the engine. False: some may be left, because a thread
 * resizes a CQ, or peers send without end. */
bool hca_pass_completions(struct hca *hca);

#endif
