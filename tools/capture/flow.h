/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Follows the PSNs of the connections in a capture, for cmd_replay.c. A flow consists of the
 * packets from one address to one queue pair of another address.
 *
 * Requests count PSNs up. READ responses and atomic acknowledgements repeat the PSNs of their
 * request; a READ request takes one PSN for each packet of its response (IBA volume 1, 9.7.3). An
 * RC packet does not name its source QP. So the two flows of an RC connection are matched by the
 * PSNs that the responses of one flow share with the requests of the other.
 */
#ifndef URXE_CAPTURE_FLOW_H
#define URXE_CAPTURE_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/packet.h>

/* X(identifier, printed name, meaning): acknowledgements by AETH syndrome (IBA 9.7.5.2.1) */
#define FLOW_ACK_LIST(X)                                                   \
	X(ACK, "ack", "positive acknowledgements")                         \
	X(RNR, "nak_rnr", "receiver not ready")                            \
	X(SEQUENCE, "nak_sequence", "PSN sequence error")                  \
	X(INVALID, "nak_invalid_request", "invalid request")               \
	X(ACCESS, "nak_remote_access", "remote access error")              \
	X(OPERATION, "nak_remote_operational", "remote operational error") \
	X(OTHER, "nak_other", "syndromes that the specification reserves")

#define FLOW_ACK_ENUM(id, name, text) FLOW_ACK_##id,
enum flow_ack { FLOW_ACK_LIST(FLOW_ACK_ENUM) FLOW_ACK_COUNT };
const char *flow_ack_name(enum flow_ack ack);

/* Skipped PSNs: [first, first + count). */
struct flow_hole {
	uint32_t first;
	uint32_t count;
};

/*
 * The PSNs of the requests, or of the responses, of a flow. UD: only packets, first_psn, last_psn
 * and next_psn are counted.
 */
struct flow_track {
	uint64_t packets;
	uint32_t first_psn;
	uint32_t last_psn;   /* of the last packet in the capture */
	uint32_t next_psn;   /* expected PSN */
	uint64_t gaps;       /* times a PSN was ahead of the expected one */
	uint64_t missing;    /* PSNs that were skipped, and have not come yet */
	uint64_t late;       /* packets that came after a later PSN: retransmitted or reordered */
	uint64_t duplicates; /* packets whose PSN had been seen */
	uint64_t restarts;   /* times the PSNs began anew: the QP was connected again */
	struct flow_hole *holes; /* the missing PSNs, the oldest first */
	uint32_t n_holes;
	uint32_t room;
};

/* The usual maximum of max_rd_atomic, so of a requester's outstanding READs. */
#define FLOW_RECENT_READS 16

struct flow {
	struct urxe_gid sgid;
	struct urxe_gid dgid;
	uint32_t dest_qpn;
	uint32_t src_qpn;  /* UD: from the DETH, and part of the flow's key; else 0 */
	uint8_t service;   /* enum urxe_service */
	uint8_t net;       /* enum urxe_net */
	uint32_t mtu;      /* path MTU in bytes, from the longest payload; 0 = unknown */
	struct flow *peer; /* the other direction; NULL = not found yet */
	uint64_t packets;
	struct flow_track requests;
	struct flow_track responses; /* of READs and atomics */
	uint64_t acks[FLOW_ACK_COUNT];
	/* The newest READ request, while its number of PSNs is unknown. */
	bool read_open;
	uint32_t read_psn;
	uint32_t read_len;
	/* Ring of upper bounds of the PSNs that the newest READ requests take, and their sum. */
	uint32_t recent_reads[FLOW_RECENT_READS];
	uint32_t recent_read_psns;
	uint32_t reads;       /* READ requests; modulo FLOW_RECENT_READS, index of the next */
	bool in_response;     /* between READ_RESPONSE_FIRST and LAST */
	uint32_t match_tries; /* responses for which no peer was found */
};

struct flow_table;

struct flow_table *flow_table_create(void);
void flow_table_destroy(struct flow_table *t);

/* Counts the next packet of the capture; urxe_packet_parse has accepted it. 0 or -ENOMEM. */
int flow_input(struct flow_table *t, const struct urxe_packet *p);

/* The flows, in the order of their first packets; NULL at the end. */
const struct flow *flow_at(const struct flow_table *t, uint32_t index);

#endif
