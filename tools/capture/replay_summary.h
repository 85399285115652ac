/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The results of urxe replay for a capture, and their output as text or JSON. */
#ifndef URXE_CAPTURE_REPLAY_SUMMARY_H
#define URXE_CAPTURE_REPLAY_SUMMARY_H

#include <stdint.h>

#include <rxe/counters.h>

#include "capture/flow.h"

struct replay_summary {
	const char *file;
	uint64_t frames;                 /* after UDP GSO packets were cut */
	uint64_t gso_runs;               /* captured frames that were cut into several */
	uint64_t roce;                   /* = right + wrong + unverifiable */
	uint64_t right;                  /* the ICRC is right */
	uint64_t wrong;                  /* the ICRC is wrong */
	uint64_t unverifiable;           /* truncated, or too malformed to find the ICRC */
	uint64_t snapped;                /* the unverifiable ones that the capture's snap length
					    truncated */
	uint64_t drops[URXE_DROP_COUNT]; /* RoCE frames that the engine would drop, by reason */
	uint64_t opcodes[256];           /* packets by the opcode of the BTH */
	struct flow_table *flows;
};

void replay_summary_print(const struct replay_summary *s);

/*
 * One JSON object:
 *   file, frames, gso_runs, roce
 *   icrc         {right, wrong, unverifiable, snapped}
 *   drops        {name: frames}, names of rxe/counters.h, without zeros
 *   opcodes      {name: packets}, names of rxe/opcode.h, without zeros
 *   connections  [{source, destination, dest_qpn, source_qpn, net, service, mtu, packets,
 *                  requests, responses, acks}]
 *     source_qpn, mtu      null if unknown
 *     requests, responses  null, or {packets, first_psn, last_psn, gaps, missing, late,
 *                          duplicates, restarts} as in struct flow_track
 *     acks                 {name: packets}, names of flow.h, with zeros
 */
void replay_summary_print_json(const struct replay_summary *s);

#endif
