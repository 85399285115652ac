/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Lines on standard error, which is the log file of a daemon that has detached. */
#ifndef URXE_TOOLS_LOG_H
#define URXE_TOOLS_LOG_H

/* The name that each line begins with. */
extern const char *log_name;

__attribute__((format(printf, 1, 2))) void log_line(const char *fmt, ...);

#endif
