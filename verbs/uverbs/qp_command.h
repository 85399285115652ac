/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* One command of a queue pair runs at a time; in cmd_qp.c, for the other files of commands. */
#ifndef URXE_VERBS_UVERBS_QP_COMMAND_H
#define URXE_VERBS_UVERBS_QP_COMMAND_H

#include <stdint.h>

struct command;
struct qp;

/*
 * Finds the queue pair of the handle, and waits until no other command of it runs. Called with
 * adapter.lock, which it releases during the wait. Until end_qp_command() no command destroys the
 * queue pair. 0 or a negative errno value; then end_qp_command() must not follow.
 */
int begin_qp_command(const struct command *c, uint32_t handle, struct qp **out);
/* With adapter.lock. */
void end_qp_command(struct qp *qp);

#endif
