/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* urxe's end of the control socket. */
#ifndef URXE_TOOLS_ASK_H
#define URXE_TOOLS_ASK_H

#include <stdint.h>

#include <jansson.h>

#define ASK_WHY     256
#define ASK_SECONDS 5 /* a daemon that takes longer has hung, or was stopped */

/*
 * What the daemon of run_dir tells (report.h); NULL on error, with one sentence in
 * `why`. The caller's to json_decref.
 */
json_t *ask_report(const char *run_dir, char why[ASK_WHY]);

#endif
