/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Can the dynamic linker preload liburxe.so into a program? For cmd_run.c. */
#ifndef URXE_URXE_PROGRAM_CHECK_H
#define URXE_URXE_PROGRAM_CHECK_H

/*
 * Looks at the file that execvp(3) would execute for `cmd`. Returns 0, or -1 if neither the program
 * nor its children can have the device, because the program changes its privileges, this process's
 * effective user or group is not the real one (AT_SECURE in ld.so(8)), or the program's dynamic
 * linker is musl's. The reason is logged. For a statically linked program it logs that only its
 * children have the device, and returns 0. A file that cannot be executed is left to execvp.
 */
int program_check(const char *cmd);

#endif
