/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The subcommands of urxe. Each gets its own arguments, its name first, and gives the exit status.
 */
#ifndef URXE_URXE_CMD_H
#define URXE_URXE_CMD_H

int cmd_run(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_sim(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_capture(int argc, char **argv);
int cmd_bench(int argc, char **argv);

#endif
