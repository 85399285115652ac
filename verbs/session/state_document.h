/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The state of a process for `urxe show`: one JSON document, which the process sends when urxed
 * asks (vnic/attach_protocol.h, NOTICE_STATE_QUERY). liburxe and the device process of a virtual
 * machine write it.
 *
 *   gone      whether the process's RDMA device is dead (struct state_document)
 *   pid, program
 *   qps       [{qpn, type, state, path_mtu, sgid_index, dgid, dmac, dest_qpn, rq_psn, sq_psn,
 *              sends, packets, receives, retries, rnr_retries, timeout, rate_limit, direct,
 *              memory, uplink, sends_by_socket, receives_by_socket, hca, way_reason, counters}]
 *     type, state    as in "RC" and "RTS"
 *     path_mtu       bytes
 *     dgid, dmac, dest_qpn
 *                    null for UD, and before the QP has a path; dmac as "52:54:00:12:34:56"
 *     rq_psn, sq_psn PSN of the next packet to receive, and of the next new packet to send
 *     sends, ...     struct urxe_qp_load; timeout is the code of IBA, rate_limit kb/s
 *     counters       {name: n}, names of rxe/counters.h, without zeros
 *     direct         whether frames go to the peer's inbox; also true while that is full, and they
 *                    go by the switch
 *     memory         whether WRITEs, READs or payloads of SENDs of this queue pair were copied
 *                    between the two processes, and the process will try to have the next
 *                    request copied, too
 *     uplink         whether frames that go to no inbox leave by the direct uplink
 *     sends_by_socket, receives_by_socket
 *                    numbers, from 0, of the sockets of the direct uplink: the socket by which
 *                    packets of a connection leave now, and the socket that received the last
 *                    packet of a connection. Absent: `uplink` is false, UD, not known, or no
 *                    socket has received a packet. Packets by other paths do not count
 *     hca            whether the HCA executes the queue pair
 *     way_reason     why it does or does not; null: the device has no HCA
 *   mrs       [{key, pd, iova, length, access}]
 *     iova           text, as "0x7f0000001000"
 *     length         2^59 - 1 for a longer region
 *     access         bits of enum urxe_access
 *   counters  {name: n} of the engine, and of what moves its frames, without zeros
 */
#ifndef URXE_VERBS_SESSION_STATE_DOCUMENT_H
#define URXE_VERBS_SESSION_STATE_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rxe/rxe.h>

/* Longest name of a program in the document: urxe show takes no longer text. */
#define STATE_PROGRAM_MAX 63

struct state_qp {
	struct urxe_qp_attr attr;
	struct urxe_qp_init init;
	struct urxe_qp_load load;
	struct urxe_counters counters;
	bool inbox; /* the value of `direct` above */
	bool memory;
	bool uplink; /* the value of `uplink` above */
	/* 1 + the number of the direct uplink's socket; 0: none, or unknown */
	uint8_t sends_by, receives_by;
	bool hca;               /* the HCA executes the queue pair */
	const char *way_reason; /* NULL: the device has no HCA */
};

struct state_counter {
	const char *name;
	uint64_t value;
};

/* A copy of the state: to write the JSON text takes too long for a thread that holds a lock. */
struct state_document {
	int socket; /* to the program that asks; it came with urxed's question */
	bool dead;  /* the device has failed, for good */
	char program[STATE_PROGRAM_MAX + 1];
	struct urxe_counters engine_counters;
	const struct state_counter *more_counters;
	uint32_t n_counters;
	struct state_qp *qps;
	size_t n_qps;
	struct urxe_mr_attr *mrs;
	size_t n_mrs;
};

/*
 * From now on state_document_send() calls `place` for each descriptor that it opens, and uses the
 * result: `fd`, or a duplicate that replaces `fd`. Call state_document_place_fds before any thread
 * calls state_document_send(): no lock protects `place`.
 */
void state_document_place_fds(int (*place)(int fd));

/* Tells the asking program that this process has begun to answer. Never blocks. */
void state_document_begin(int socket);
/*
 * Sends the document to the other end of state->socket (struct vnic_attach_state), and closes the
 * socket. `complete`: *state has everything; if not, sends an error. Never blocks. Any thread.
 */
void state_document_send(const struct state_document *state, bool complete);

/* Fills in all members but inbox, memory, uplink, sends_by, receives_by, hca and way_reason. */
void state_document_fill_qp(struct state_qp *entry, const struct urxe_qp *qp);
/*
 * The value of `memory` if the peer's memory can be reached: whether requests of the queue pair
 * were copied between the processes, and the engine would have the next one copied, too. `entry` is
 * filled in by state_document_fill_qp.
 */
bool state_document_copies(const struct state_qp *entry, const struct urxe_qp *qp);

#endif
