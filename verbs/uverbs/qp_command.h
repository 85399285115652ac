/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Lets only one command of a queue pair run at a time, because commands release adapter.lock while
 * an HCA executes them. cmd_qp.c has the functions, for itself and cmd_modify_qp.c. */
#ifndef URXE_VERBS_UVERBS_QP_COMMAND_H
#define URXE_VERBS_UVERBS_QP_COMMAND_H

#include <stdint.h>

struct command;
struct qp;

/* Sets *out to the queue pair of the handle, and waits until no other command of it runs. Called
 * with adapter.lock, which it releases during the wait. Until end_qp_command() no command destroys
 * the queue pair. 0 or a negative errno value; then end_qp_command() must not follow. */
int begin_qp_command(const struct command *c, uint32_t handle, struct qp **out);
/* Ends the command that begin_qp_command() began: the next command of the queue pair may run. With
 * adapter.lock. */
void end_qp_command(struct qp *qp);

#endif
