/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Results of a simulation as text or JSON; they depend on the scenario alone. */
#ifndef URXE_SIM_SCENARIO_REPORT_H
#define URXE_SIM_SCENARIO_REPORT_H

#include <stdio.h>

#include "sim/world.h"

/*
 * Bits per second of the requests' data that completed between --warmup and the end: --time, or
 * earlier if all requests are complete.
 */
double report_goodput(const struct world *world);
/* Jain's index of the streams' goodput: 1 = all have the same, 1/n = only one of n has any. */
double report_fairness(const struct world *world);

/* Prints the results of a phase that has ended without a failure, one line or several. */
void report_phase(const struct world *world, enum phase phase, FILE *to);
/* Prints one JSON object; pcap, the capture's name, may be NULL. */
void report_json(const struct world *world, const char *pcap, FILE *to);

#endif
