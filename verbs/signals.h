/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Signals, and cancellation, of a thread that is in a system call as far as its program knows, and
 * does the engine's work meanwhile: they have to wait until that can be left, and then do what they
 * would have done to the call. Costs system calls only where the program handles any signals. Those
 * of faults do not wait. Functions are for the thread that calls them.
 */
#ifndef URXE_VERBS_SIGNALS_H
#define URXE_VERBS_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* The program sets a signal's action. */
void signals_action(const struct sigaction *act);

/* From now on they wait. */
void signals_hold(void);
/* Whether any does. */
bool signals_wait(void);
/* Lets them happen. True: of those that did one is such that it interrupts a system call. */
bool signals_let(void);

#endif
