/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Chooses whether the HCA or the engine executes a connection. For uverbs/cmd_modify_qp.c. */
#ifndef URXE_VERBS_REQUESTS_HCA_CHOICE_H
#define URXE_VERBS_REQUESTS_HCA_CHOICE_H

#include <stdbool.h>

#include <hca/way.h>
#include <rxe/rxe.h>

/*
 * Decides whether the HCA (true) or the engine (false) executes a connection with these attributes,
 * and sets *reason. `number_unknown`: the daemon does not know the QPN of the queue pair, so only
 * the HCA can execute it. May wait for an answer of the daemon; adapter.lock must not be held.
 */
bool adapter_hca_chooses(const struct urxe_qp_attr *attr, bool number_unknown,
			 enum way_reason *reason);

#endif
