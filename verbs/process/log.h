/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages on standard error: those of the level that URXE_LOG names, and of more urgent levels.
 * Any thread; errno stays. */
#ifndef URXE_VERBS_PROCESS_LOG_H
#define URXE_VERBS_PROCESS_LOG_H

enum log_level { LOG_NONE, LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

extern enum log_level log_level;

/* Sets log_level by URXE_LOG. */
void log_init(void);
/* Writes one line, whatever log_level is. */
void log_write(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define log_at(level, ...)                                     \
	do {                                                   \
		if (__builtin_expect((level) <= log_level, 0)) \
			log_write(__VA_ARGS__);                \
	} while (0)
#define log_error(...)   log_at(LOG_ERROR, __VA_ARGS__)
#define log_warning(...) log_at(LOG_WARNING, __VA_ARGS__)
#define log_info(...)    log_at(LOG_INFO, __VA_ARGS__)
#define log_debug(...)   log_at(LOG_DEBUG, __VA_ARGS__)

#endif
