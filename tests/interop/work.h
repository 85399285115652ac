/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Executes steps of a fixture by verbs. */
#ifndef URXE_INTEROP_WORK_H
#define URXE_INTEROP_WORK_H

#include <stddef.h>

#include "objects.h"

/*
 * Executes a step, or waits for its completion. Ignores steps that only the engine knows, such as
 * counters. False: the result differs; `why` describes the difference.
 */
bool work_step(struct objects *objects, const struct step *step, char *why, size_t room);

#endif
