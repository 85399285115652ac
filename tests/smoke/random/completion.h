/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The end of an operation: its completions and events, and the states and memory that it leaves. */
#ifndef URXE_SMOKE_RANDOM_COMPLETION_H
#define URXE_SMOKE_RANDOM_COMPLETION_H

#include "side.h"

/* Bits of wr_id, above the number of the work request. */
#define COMPLETION_RECEIVE (1ull << 32)

/* Both sides call it. Connects the marker's queue pair. */
void completion_start(struct side *side);
/* Waits for the completions of all posted sends. */
void completion_await_sends(struct side *side);
/*
 * Both sides call it after an operation. Waits until all its messages have arrived, and all
 * requests of it and of queue pairs in state ERR have completed. Adds what the side sees to the
 * log. Exits if something is missing after two minutes.
 */
void completion_settle(struct side *side);

#endif
