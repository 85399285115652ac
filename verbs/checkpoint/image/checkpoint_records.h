/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The records of a saved process, without pointers, and the functions that write and read their
 * fields. docs/checkpoint.md describes the format. Objects refer to each other by the handles of
 * their context; contexts and channels are named by their index in the stream.
 */
#ifndef URXE_VERBS_CHECKPOINT_CHECKPOINT_RECORDS_H
#define URXE_VERBS_CHECKPOINT_CHECKPOINT_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include <rxe/state_stream.h>
#include <rxe/types.h>
#include <vnic/attach_protocol.h>

/* Kinds of records, in the order in which a stream has them. */
enum checkpoint_record {
	CHECKPOINT_PROCESS = 1,
	CHECKPOINT_CHANNEL,
	CHECKPOINT_CONTEXT,
	CHECKPOINT_PD,
	CHECKPOINT_MR,
	CHECKPOINT_MW,
	CHECKPOINT_AH,
	CHECKPOINT_CQ,
	CHECKPOINT_SRQ,
	CHECKPOINT_QP,
	CHECKPOINT_ENGINE,
	CHECKPOINT_DESCRIPTOR,
	CHECKPOINT_MAPPING,
	CHECKPOINT_EVENTS,
	CHECKPOINT_RING,
	CHECKPOINT_RDMACM,
	CHECKPOINT_RDMACM_ID,
	CHECKPOINT_RDMACM_STATE,
	CHECKPOINT_END,
};
/* The kind of the last record in streams of version 1, which have no records of rdma_cm. */
#define CHECKPOINT_END_1 16
#define CHECKPOINT_KINDS (CHECKPOINT_END + 1)

/* Bytes of a ring that are stored together; pages of zeros are left out. */
#define RING_PAGE 4096u
/* No index: the context has no channel yet, or the CQ has none. */
#define NO_CHANNEL UINT32_MAX

struct process_record {
	uint8_t mac[6];
	uint16_t mtu;
	uint32_t page_size;
	uint32_t last_pd; /* adapter.last_pd */
	uint32_t n_blocks;
	uint32_t blocks[VNIC_LEASES_MAX]; /* first QPN of each block, in the order of the leases */
	/* Of the port: GID table, link MTU, and whether it was active. */
	struct vnic_attach_gid gids[VNIC_ATTACH_GIDS];
	uint16_t link_mtu;
	bool up;
};

/* An event of a channel that the program has not read yet. */
struct event_record {
	uint64_t element;
	uint32_t type; /* asynchronous events only */
};

struct channel_record {
	uint32_t event_size;
};

/* Addresses of librxe's functions that poll_hook.c and recv_hook.c have replaced; 0 = none. */
struct hooks_record {
	uint64_t poll_cq, post_recv, post_srq_recv, start_poll, next_poll, end_poll;
};

struct context_record {
	uint64_t memfd_size;
	uint64_t ring_offset; /* in the memfd, in bytes: the lowest offset of all rings */
	/* Where a mapping for further rings begins, in the memfd and in memory. It ends at
	 * ring_offset (struct ring_space). Only earlier versions wrote a mapping that is not
	 * empty. */
	uint64_t mapped_offset, mapped_address;
	uint32_t async_channel; /* index of the channel for asynchronous events, or NO_CHANNEL */
	uint32_t poll_ends;     /* enum poll_ends of poll_hook.c */
	struct hooks_record hooks;
};

/* Members that the records of all objects have. */
struct object_record {
	uint32_t context;     /* index of the context in the stream */
	uint32_t handle;      /* of the object in its context */
	uint64_t user_handle; /* the program's, as in the uverbs ABI */
};

struct pd_record {
	struct object_record object;
	uint32_t number;
};

struct mr_record {
	struct object_record object;
	uint32_t pd, key;
	uint64_t start, length;
	/* All extents of the region with an address were mapped. False: the program had unmapped a
	 * part of them, and the library had not seen the call. True in streams of earlier versions
	 * than 3, which do not have the member. */
	bool whole;
};

struct mw_record {
	struct object_record object;
	uint32_t pd, key;
};

struct ah_record {
	struct object_record object;
	uint32_t pd;
	struct urxe_path path;
};

struct ring_record {
	/* The address of this library's mapping of the ring. 0: there is no ring, as for the
	 * receives of a queue pair with a shared receive queue. */
	uint64_t address;
	uint64_t offset;      /* in the context's memfd, in bytes */
	uint32_t mask, shift; /* as in struct queue */
};

struct work_queue_record {
	struct ring_record ring;
	uint32_t cursor, base, released; /* as in struct work_queue */
};

struct cq_record {
	struct object_record object;
	uint32_t channel; /* index of the completion channel, or NO_CHANNEL */
	uint32_t producer;
	uint32_t comp_events, async_events; /* sent for this CQ since its creation, modulo 2^32 */
	bool armed;
	bool ex_known; /* as in struct cq */
	struct ring_record ring;
};

struct srq_record {
	struct object_record object;
	uint32_t pd, max_sge, async_events;
	struct work_queue_record queue;
};

struct qp_record {
	struct object_record object;
	uint32_t qpn, pd, send_cq, recv_cq;
	uint32_t srq; /* 0 = none */
	uint32_t async_events;
	uint8_t qp_type;
	uint32_t send_sge, inline_bytes, recv_sge; /* limits of one request */
	struct work_queue_record send, receive;
	/* If `connected`: the GID and QPN of the remote queue pair, as registered with the daemon
	 * (adapter/told_qp.h). */
	bool connected;
	uint8_t dgid[16];
	uint32_t remote_qpn;
};

/* The kinds of objects to which a descriptor of the program refers. */
enum descriptor_kind { DESCRIPTOR_CONTEXT, DESCRIPTOR_CHANNEL, DESCRIPTOR_RDMACM };

struct descriptor_record {
	uint32_t number; /* of the descriptor */
	uint8_t kind;    /* enum descriptor_kind */
	uint32_t index;  /* of the context, channel or rdma_cm device; version 1: 0 for rdma_cm */
	bool cloexec, nonblock;
};

/* A part of a context's memfd that librxe or this library has mapped. */
struct mapping_record {
	uint32_t context;
	uint64_t start, length, offset;
	bool writable;
};

/*
 * An open rdma_cm device, with the numbers of its records: n_ids of its IDs (CHECKPOINT_RDMACM_ID),
 * and n_states that urxed has written (CHECKPOINT_RDMACM_STATE). After the records of all devices,
 * the stream has those of all IDs, then those of urxed.
 */
struct rdmacm_record {
	uint32_t n_ids, n_states;
};

/* This library's state of an rdma_cm ID; urxed's state is in a record of its own. */
struct rdmacm_id_record {
	uint32_t device; /* index of the rdma_cm device */
	uint32_t number;
	uint64_t uid; /* the program's; 0: a connection request, not yet accepted */
	uint16_t ps;  /* enum rdma_ucm_port_space */
	uint8_t qp_type;
	bool owner;      /* true: urxed owns the ID; false: the kernel may become its owner */
	uint32_t events; /* that the program has fetched; 0 in streams of earlier versions than 3 */
};

/*
 * A ring. Behind this record follow the number of its stored pages (4 bytes), and for each of these
 * pages its index (4 bytes) and its RING_PAGE bytes.
 */
struct ring_bytes_record {
	uint32_t context;
	uint64_t offset, size;
};

extern const struct state_format checkpoint_format;

void process_fields(struct state_stream *s, struct process_record *r);
void channel_fields(struct state_stream *s, struct channel_record *r);
void unread_event_fields(struct state_stream *s, struct event_record *r);
void context_fields(struct state_stream *s, struct context_record *r);
void pd_fields(struct state_stream *s, struct pd_record *r);
void mr_fields(struct state_stream *s, struct mr_record *r);
void mw_fields(struct state_stream *s, struct mw_record *r);
void ah_fields(struct state_stream *s, struct ah_record *r);
void cq_fields(struct state_stream *s, struct cq_record *r);
void srq_fields(struct state_stream *s, struct srq_record *r);
void qp_fields(struct state_stream *s, struct qp_record *r);
void descriptor_fields(struct state_stream *s, struct descriptor_record *r);
void mapping_fields(struct state_stream *s, struct mapping_record *r);
void rdmacm_fields(struct state_stream *s, struct rdmacm_record *r);
void rdmacm_id_fields(struct state_stream *s, struct rdmacm_id_record *r);
void ring_bytes_fields(struct state_stream *s, struct ring_bytes_record *r);

#endif
