/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The subcommands of urxe, for main.c. argv[0] is the subcommand; each returns the exit status. */
#ifndef URXE_URXE_CMD_H
#define URXE_URXE_CMD_H

int cmd_run(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_sim(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_capture(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_vm(int argc, char **argv);
int cmd_doctor(int argc, char **argv);

#endif
