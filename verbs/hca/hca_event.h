/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion events and asynchronous events of the HCA. For hca.c and objects/hca_qp.c. */
#ifndef URXE_VERBS_HCA_HCA_EVENT_H
#define URXE_VERBS_HCA_HCA_EVENT_H

#include <stdbool.h>

struct hca;

/* Handles up to 64 completion events that wait: calls hca_poll() before each, and passes the event
 * to the engine. Never blocks. */
void hca_handle_comp_events(struct hca *hca);
/* Handles up to 64 asynchronous events that wait: calls hca_pass_completions() before each. Never
 * blocks. */
void hca_handle_async_events(struct hca *hca);
/* Passes the completions of all CQs to the engine. False: some may be left, because a thread
 * resizes a CQ, or peers send without end. */
bool hca_pass_completions(struct hca *hca);

#endif
