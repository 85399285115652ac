/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The steps of a fixture, done with verbs. */
#ifndef URXE_INTEROP_WORK_H
#define URXE_INTEROP_WORK_H

#include <stddef.h>

#include "objects.h"

/*
 * Does a step, or waits for the completion that it says has to come; steps that only the
 * engine knows, as counters, are passed over. False where what came is something else: `why`
 * says what.
 */
bool work_step(struct objects *objects, const struct step *step, char *why, size_t room);

#endif
