/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Lines on standard error, which is the log file of a daemon that has detached. */
#ifndef URXE_COMMON_LOG_H
#define URXE_COMMON_LOG_H

#include <stdint.h>

/* The name that each line begins with. */
extern const char *log_name;

__attribute__((format(printf, 1, 2))) void log_line(const char *fmt, ...);

/* Of lines that strangers cause there are so many at once, and then one a second. */
#define LOG_BURST    500
#define LOG_EVERY_NS 1000000000u

/* All 0 at first. */
struct log_ratelimit {
	uint64_t since; /* up to when what was spent has come back, one each LOG_EVERY_NS */
	uint32_t spent;
	uint64_t left_out; /* lines, since the last one that was not */
};

/* A line, unless the budget is spent: so that nobody can fill the disk with them. */
__attribute__((format(printf, 3, 4))) void log_ratelimited(struct log_ratelimit *budget,
							   uint64_t now, const char *fmt, ...);

#endif
