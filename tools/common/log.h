/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Log lines of urxe and urxed on standard error, which is the log file of a detached daemon. */
#ifndef URXE_COMMON_LOG_H
#define URXE_COMMON_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "common/token_bucket.h"

/* The program's name, with which each line begins; main() sets it if it is not "urxe". */
extern const char *log_name;
/* Whether lines begin with the time in UTC, as they must in the log file of a detached daemon. The
 * journal adds times itself. */
extern bool log_has_times;

/* Writes a line; the format has no newline. Control characters become '?' (printable.h). */
__attribute__((format(printf, 1, 2))) void log_line(const char *fmt, ...);

/* Rate limit of lines that other processes can cause: a burst, then one line a second. */
#define LOG_BURST    500
#define LOG_EVERY_NS 1000000000u

/* The limit of one kind of lines. A zeroed structure permits a full burst. */
struct log_ratelimit {
	struct token_bucket bucket;
	uint64_t left_out; /* lines suppressed since the last line that was written */
};

/*
 * Writes a line unless the limit is exceeded, so that no process can fill the disk with log lines.
 * `now` is a time of now_ns(). The first line after suppressed ones is preceded by their number.
 */
__attribute__((format(printf, 3, 4))) void log_ratelimited(struct log_ratelimit *budget,
							   uint64_t now, const char *fmt, ...);

#endif
