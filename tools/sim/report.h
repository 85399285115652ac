/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What is told of a world: nothing in it depends on the machine or on the time it took. */
#ifndef URXE_SIM_REPORT_H
#define URXE_SIM_REPORT_H

#include <stdio.h>

#include "sim/world.h"

/* Application bytes that were completed between warm-up and end, as bits a second. */
double report_goodput(const struct world *world);
/* Jain's index of the streams' goodput: 1 = all have the same, 1/n = one has everything. */
double report_fairness(const struct world *world);

/* The line of a phase. */
void report_phase(const struct world *world, enum phase phase, FILE *to);
/* Everything, as one JSON object; pcap may be NULL. */
void report_json(const struct world *world, const char *pcap, FILE *to);

#endif
