/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What urxe replay has found in a capture, and how it is told. */
#ifndef URXE_CAPTURE_REPLAY_SUMMARY_H
#define URXE_CAPTURE_REPLAY_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/counters.h>

#include "capture/flow.h"

struct replay_summary {
	const char *file;
	uint64_t frames;
	uint64_t roce; /* = right + wrong + unverifiable */
	uint64_t right;
	uint64_t wrong;
	uint64_t unverifiable;           /* cut short, or so malformed that no ICRC can be found */
	uint64_t cut;                    /* of these: by the capture's snap length */
	uint64_t drops[URXE_DROP_COUNT]; /* of RoCE frames, by what the engine would say */
	uint64_t opcodes[256];
	struct flow_table *flows;
};

void replay_summary_print(const struct replay_summary *s);

/*
 * One JSON object:
 *   file, frames, roce
 *   icrc         {right, wrong, unverifiable, snapped}
 *   drops        {name: frames}, names of rxe/counters.h; only what occurred
 *   opcodes      {name: packets}, names of rxe/opcode.h; only what occurred
 *   connections  [{source, destination, dest_qpn, source_qpn, net, service, mtu, packets,
 *                  requests, responses, acks}]
 *     source_qpn is null, and mtu null, where no packet shows it
 *     requests, responses  null, or {packets, first_psn, last_psn, gaps, missing, late,
 *                          duplicates, restarts} as in struct flow_track
 *     acks                 {name: packets}, names of flow.h; all of them
 */
void replay_summary_print_json(const struct replay_summary *s);

#endif
