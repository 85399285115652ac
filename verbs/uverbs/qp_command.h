/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* One command of a queue pair runs at a time; in cmd_qp.c, for the other files of commands. */
#ifndef URXE_VERBS_UVERBS_QP_COMMAND_H
#define URXE_VERBS_UVERBS_QP_COMMAND_H

#include <stdint.h>

struct command;
struct qp;

/* With the lock, which it releases while another command of the queue pair runs. Until
 * end_qp_command() no command destroys the queue pair. */
int begin_qp_command(const struct command *c, uint32_t handle, struct qp **out);
/* With the lock. */
void end_qp_command(struct qp *qp);

#endif
