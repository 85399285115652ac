/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * All reasons for which the engine drops a packet, and all events that it counts. The enums, the
 * names that tools print and the manual page are generated from these lists.
 */
#ifndef URXE_RXE_COUNTERS_H
#define URXE_RXE_COUNTERS_H

#include <stdint.h>

/* X(identifier, printed name, meaning) */
#define URXE_DROP_LIST(X)                                                                        \
	X(NOT_ROCE, "not_roce", "neither RoCEv1 nor RoCEv2")                                     \
	X(DOUBLE_VLAN, "double_vlan", "more than one VLAN tag, or a provider's (802.1ad)")       \
	X(TRUNCATED, "truncated", "frame ends before its headers or its IP or GRH length say")   \
	X(BAD_IP, "bad_ip", "IP or GRH header malformed, with options, or a fragment")           \
	X(BAD_UDP, "bad_udp", "UDP length does not agree with the IP length")                    \
	X(BAD_TVER, "bad_tver", "transport header version is not 0")                             \
	X(BAD_OPCODE, "bad_opcode", "BTH opcode unknown or not supported")                       \
	X(XRC, "xrc", "opcode of an extended reliable connection, which is not supported")       \
	X(BAD_LENGTH, "bad_length", "headers, payload, pad and ICRC do not fit the length")      \
	X(BAD_ICRC, "bad_icrc", "invariant CRC is wrong")                                        \
	X(BAD_DGID, "bad_dgid", "destination address is not of this device")                     \
	X(BAD_VLAN, "bad_vlan", "VLAN is not that of the destination address")                   \
	X(BAD_QPN, "bad_qpn", "no such queue pair")                                              \
	X(BAD_SERVICE, "bad_service", "opcode is not of the queue pair's service type")          \
	X(BAD_STATE, "bad_state", "queue pair is not in a state that receives")                  \
	X(OFFLOADED, "offloaded", "queue pair is executed by the HCA")                           \
	X(BAD_PKEY, "bad_pkey", "P_Key does not match")                                          \
	X(BAD_QKEY, "bad_qkey", "Q_Key does not match")                                          \
	X(BAD_SGID, "bad_sgid", "source address is not the connected peer's")                    \
	X(OWN_SOURCE, "own_source", "came from another host, with an address of this device")    \
	X(BAD_MULTICAST, "bad_multicast", "multicast address or QPN used without the other")     \
	X(BAD_CNP, "bad_cnp", "congestion notification without BECN")                            \
	X(NO_GROUP, "no_group", "multicast address that no queue pair is attached to")           \
	X(OWN_MULTICAST, "own_multicast", "copy for its own sender, which blocks own multicast") \
	X(OUT_OF_SEQUENCE, "out_of_sequence", "request PSN is ahead of the expected one")        \
	X(UNREADABLE, "unreadable", "referenced payload that could not be read from its sender") \
	X(KEY_IN_USE, "key_in_use",                                                              \
	  "SEND with invalidate while a peer copies, not kept for later")                        \
	X(BAD_INVALIDATE, "bad_invalidate",                                                      \
	  "SEND with invalidate of a key that its queue pair may not invalidate")                \
	X(DUPLICATE, "duplicate", "duplicate request whose answer is no longer kept")            \
	X(UC_SEQUENCE, "uc_sequence", "UC packet outside an intact message")                     \
	X(NO_RECV, "no_recv", "no receive work request for a UC or UD message")                  \
	X(BAD_REQUEST, "bad_request", "request refused on an unacknowledged service")            \
	X(STALE_ACK, "stale_ack", "acknowledgement of a PSN that is not outstanding")            \
	X(BAD_RESPONSE, "bad_response", "response does not fit the request it answers")

#define URXE_EVENT_LIST(X)                                                                       \
	X(RX_PACKETS, "rx_packets", "packets accepted")                                          \
	X(RX_BYTES, "rx_bytes", "bytes of accepted frames")                                      \
	X(TX_PACKETS, "tx_packets", "packets sent")                                              \
	X(TX_BYTES, "tx_bytes", "bytes of sent frames")                                          \
	X(COPY_REQUESTS, "direct_requests", "requests executed by a copy, without packets")      \
	X(COPY_BYTES, "direct_bytes", "bytes copied by the copy transport")                      \
	X(ONE_SIDED, "one_sided", "one-sided requests of peers, received in packets")            \
	X(HCA_REQUESTS, "hca_requests", "send requests handed to the HCA")                       \
	X(HCA_RECEIVES, "hca_receives", "receive requests completed by the HCA")                 \
	X(HCA_BYTES, "hca_bytes", "bytes of messages that the HCA sent or received")             \
	X(REORDERED, "reordered", "request packets kept until the gap before them filled")       \
	X(DUP_REQUEST, "dup_request", "duplicate requests answered again")                       \
	X(NAK_SEQ_SENT, "nak_seq_sent", "sequence error NAKs sent")                              \
	X(NAK_RNR_SENT, "nak_rnr_sent", "receiver not ready NAKs sent")                          \
	X(NAK_INVALID_SENT, "nak_invalid_sent", "invalid request NAKs sent")                     \
	X(NAK_ACCESS_SENT, "nak_access_sent", "remote access error NAKs sent")                   \
	X(NAK_OP_SENT, "nak_op_sent", "remote operational error NAKs sent")                      \
	X(NAK_SEQ_RCVD, "nak_seq_rcvd", "sequence error NAKs received")                          \
	X(NAK_RNR_RCVD, "nak_rnr_rcvd", "receiver not ready NAKs received")                      \
	X(NAK_INVALID_RCVD, "nak_invalid_rcvd", "invalid request NAKs received")                 \
	X(NAK_ACCESS_RCVD, "nak_access_rcvd", "remote access error NAKs received")               \
	X(NAK_OP_RCVD, "nak_op_rcvd", "remote operational error NAKs received")                  \
	X(IMPLIED_NAK, "implied_nak", "responses found missing by a later response")             \
	X(PROBE, "probe", "probes: packets sent again to a silent peer")                         \
	X(TIMEOUT, "timeout", "local ACK timeouts")                                              \
	X(RETRANSMIT, "retransmit", "request packets sent again")                                \
	X(MCAST_LOOPBACK, "mcast_loopback", "own multicast datagrams delivered on this device")  \
	X(ECN_MARKED, "ecn_marked", "packets received with a congestion mark (CE)")              \
	X(CNP_SENT, "cnp_sent", "congestion notification packets sent")                          \
	X(CNP_WITHHELD, "cnp_withheld",                                                          \
	  "congestion notifications over the device's limit per interval")                       \
	X(CNP_RCVD, "cnp_rcvd", "congestion notification packets received")                      \
	X(RATE_CUT, "rate_cut", "rate reductions of queue pairs by a CNP")                       \
	X(COPY_DECLINED, "direct_declined", "requests sent in packets after a copy was refused") \
	X(REFERENCES, "references", "SEND payloads, or parts, that the receiver copies")         \
	X(REFERENCE_BYTES, "reference_bytes", "payload bytes sent as references")                \
	X(PULLED_BYTES, "pulled_bytes", "payload bytes copied from senders by references")       \
	X(MEMORY_GONE, "memory_gone", "accesses to registered memory that is unmapped")          \
	X(LOCAL_ERROR, "local_error", "work requests completed in a local error")                \
	X(WC_LOC_LEN, "wc_loc_len_err", "completions: local length error")                       \
	X(WC_LOC_QP_OP, "wc_loc_qp_op_err", "completions: local QP operation error")             \
	X(WC_LOC_PROT, "wc_loc_prot_err", "completions: local protection error")                 \
	X(WC_WR_FLUSH, "wc_wr_flush_err", "completions: request flushed")                        \
	X(WC_MW_BIND, "wc_mw_bind_err", "completions: memory window bind error")                 \
	X(WC_BAD_RESP, "wc_bad_resp_err", "completions: bad response")                           \
	X(WC_LOC_ACCESS, "wc_loc_access_err", "completions: local access error")                 \
	X(WC_REM_INV_REQ, "wc_rem_inv_req_err", "completions: remote invalid request")           \
	X(WC_REM_ACCESS, "wc_rem_access_err", "completions: remote access error")                \
	X(WC_REM_OP, "wc_rem_op_err", "completions: remote operation error")                     \
	X(WC_RETRY_EXC, "wc_retry_exc_err", "completions: transport retries exceeded")           \
	X(WC_RNR_RETRY_EXC, "wc_rnr_retry_exc_err", "completions: RNR retries exceeded")         \
	X(CQ_OVERFLOW, "cq_overflow", "completions lost to a full completion queue")

#define URXE_DROP_ENUM(id, name, text)  URXE_DROP_##id,
#define URXE_EVENT_ENUM(id, name, text) URXE_EVENT_##id,

/* Why a packet was dropped; URXE_DROP_NONE: the packet was accepted. */
enum urxe_drop { URXE_DROP_NONE, URXE_DROP_LIST(URXE_DROP_ENUM) URXE_DROP_COUNT };
enum urxe_event { URXE_EVENT_LIST(URXE_EVENT_ENUM) URXE_EVENT_COUNT };

struct urxe_counters {
	uint64_t event[URXE_EVENT_COUNT];
	uint64_t drop[URXE_DROP_COUNT]; /* [URXE_DROP_NONE] stays 0 */
};

/* Printed name and meaning; both are NULL for a value outside the enum. */
const char *urxe_drop_name(enum urxe_drop drop);
const char *urxe_drop_text(enum urxe_drop drop);
const char *urxe_event_name(enum urxe_event event);
const char *urxe_event_text(enum urxe_event event);

#endif
