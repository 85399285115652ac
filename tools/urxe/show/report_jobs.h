/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Adds the job of each process to the report, for cmd_show.c. */
#ifndef URXE_URXE_SHOW_REPORT_JOBS_H
#define URXE_URXE_SHOW_REPORT_JOBS_H

#include <jansson.h>

/* The environment variable with the name of a job; `urxe run` sets it if it is not set. */
#define JOB_VARIABLE "URXE_JOB"
/* Maximum length of a name, with the terminating NUL. A longer name is cut. */
#define JOB_NAME 64

/*
 * Adds `job` to each of the report's leases: the value of URXE_JOB in the environment of the
 * process when it started, from /proc; null if it has none, or if /proc does not show it to the
 * caller, also because the daemon is in another PID namespace.
 */
void report_jobs_add(json_t *report);

#endif
