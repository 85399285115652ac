/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "attach/main_thread.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/clock.h"
#include "poll/engine_wake.h"
#include "process/text_lines.h"

/* Least time between two looks at /proc. */
#define LOOK_NS 10000000

/* Threads of this library besides the engine thread. */
static atomic_int own_threads;

#define SKIP_4_FIELDS " %*s %*s %*s %*s"

void main_thread_note_exit(void)
{
	if (gettid() != getpid())
		return;
	adapter_thread.main_ended = true;
	if (adapter_thread.wake_fd > 0)
		engine_wake();
}

/*
 * The fields of /proc/self/stat behind the name, which may contain any byte: the state is the
 * first, the number of threads the 18th. The main thread counts, too: it stays a zombie until all
 * other threads have ended.
 */
static bool has_only_own_threads(const char *fields)
{
	char state;
	int threads;

	return sscanf(fields, " %c" SKIP_4_FIELDS SKIP_4_FIELDS SKIP_4_FIELDS SKIP_4_FIELDS " %d",
		      &state, &threads) == 2 &&
	       state == 'Z' && threads == 2 + atomic_load(&own_threads);
}

bool main_thread_was_last(void)
{
	static uint64_t looked_at;
	struct text_lines stat;
	char line[1024];
	const char *name_end;
	bool last = false;

	if (!adapter_thread.main_ended || clock_now() - looked_at < LOOK_NS)
		return false;
	looked_at = clock_now();
	if (!text_lines_open(&stat, "/proc/self/stat"))
		return false;
	while (!last && text_lines_next(&stat, line, sizeof(line))) {
		name_end = strrchr(line, ')');
		last = name_end && has_only_own_threads(name_end + 1);
	}
	text_lines_close(&stat);
	return last;
}

void main_thread_count_own(int change)
{
	atomic_fetch_add(&own_threads, change);
}

void main_thread_fork_child(void)
{
	atomic_store(&own_threads, 0);
}
