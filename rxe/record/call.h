/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The records of a recording, written and read by the fields of rxe/state_stream.h: calls of the
 * engine's owner, and behind each call what the engine did within the call. */
#ifndef URXE_RECORD_CALL_H
#define URXE_RECORD_CALL_H

#include <rxe/record.h>
#include <rxe/state_stream.h>

/* Most segments of a recorded request. The engine refuses a request with more than URXE_MAX_SGE.
 * The recording keeps one more, so that the replayed engine refuses the request, too. */
#define CALL_SEGS (URXE_MAX_SGE + 1)

/* Members of struct call that a call's record has, besides those of the function in CALL_LIST. */
enum call_member { NOW = 1, QPN = 2, KEY = 4, VALUE = 8, CONTEXT = 16, FLAG = 32 };

/* X(identifier, name, members, function of the other fields or NULL). The kind of a call is its
 * position in this list, so new calls are added at the end. */
#define CALL_LIST(X)                                                     \
	X(INPUT, "input", NOW | VALUE, NULL)                             \
	X(OUTPUT, "output", NOW, output_fields)                          \
	X(POST_SEND, "post_send", QPN, send_fields)                      \
	X(POST_MALFORMED, "post_malformed", QPN | CONTEXT | VALUE, NULL) \
	X(POST_RECV, "post_recv", QPN, recv_fields)                      \
	X(POST_SRQ, "post_srq_recv", CONTEXT, recv_fields)               \
	X(CQ_ARM, "req_notify_cq", CONTEXT | FLAG, NULL)                 \
	X(QP_EXECUTE, "execute", NOW | QPN, NULL)                        \
	X(QP_MODIFY, "modify_qp", NOW | QPN | VALUE, modify_fields)      \
	X(QP_CREATE, "create_qp", CONTEXT | QPN, qp_fields)              \
	X(QP_DESTROY, "destroy_qp", QPN, NULL)                           \
	X(QP_FLUSH_ACKS, "flush_acks", QPN, NULL)                        \
	X(CQ_CREATE, "create_cq", CONTEXT, NULL)                         \
	X(CQ_DESTROY, "destroy_cq", CONTEXT, NULL)                       \
	X(SRQ_CREATE, "create_srq", CONTEXT, srq_fields)                 \
	X(SRQ_DESTROY, "destroy_srq", CONTEXT, NULL)                     \
	X(SRQ_LIMIT, "limit_srq", CONTEXT | VALUE, NULL)                 \
	X(SRQ_RESIZE, "resize_srq", CONTEXT | VALUE, NULL)               \
	X(MR_REG, "reg_mr", 0, mr_fields)                                \
	X(MR_REREG, "rereg_mr", KEY, mr_fields)                          \
	X(MR_DEREG, "dereg_mr", KEY, NULL)                               \
	X(MR_UNMAP, "unmap", KEY, bytes_fields)                          \
	X(MR_UNMAP_ALL, "unmap_all", KEY, NULL)                          \
	X(MR_UNMAPPED, "unmapped", KEY | FLAG, bytes_fields)             \
	X(MW_ALLOC, "alloc_mw", KEY, mw_fields)                          \
	X(MW_DEALLOC, "dealloc_mw", KEY, NULL)                           \
	X(FAST_ALLOC, "alloc_mr", VALUE, pd_field)                       \
	X(FAST_FREE, "free_mr", KEY, NULL)                               \
	X(MCAST_ATTACH, "attach_mcast", QPN, gid_fields)                 \
	X(MCAST_DETACH, "detach_mcast", QPN, gid_fields)                 \
	X(GID_SET, "set_gid", VALUE | FLAG, gid_set_fields)              \
	X(GID_VLAN, "set_vlan", VALUE, u16_field)                        \
	X(PKEY_SET, "set_pkey", VALUE, u16_field)                        \
	X(LINK_MTU, "set_mtu", VALUE, NULL)                              \
	X(SET_GSO, "set_gso", FLAG, NULL)                                \
	X(SAVE, "save_state", NOW, NULL)

#define CALL_ENUM(id, name, members, fields) CALL_##id,
enum call_kind { CALL_LIST(CALL_ENUM) CALL_COUNT };

/* Most frames of a call of urxe_output. */
#define CALL_FRAMES 256
/* Largest room of such a frame in a recording, and size of a replay's buffers, bytes: enough for
 * the longest MTU and the Ethernet header. The engine does the same with any larger room. */
#define CALL_FRAME_ROOM 65600u

/* Replay: memory for what pointers in a call point to. */
struct call_space {
	struct urxe_seg segs[CALL_SEGS];
	struct urxe_path path;
	uint32_t room[CALL_FRAMES];
	struct urxe_extent *extents; /* the caller frees them */
};

/* The arguments of a call. */
struct call {
	enum call_kind kind;
	uint64_t now;
	uint32_t qpn;
	uint32_t key; /* of a region, fast registration or memory window */
	/*
	 * input: frames. post_malformed: enum urxe_wc_status. modify_qp: attribute mask. limit_srq:
	 * limit. resize_srq: max_wr. alloc_mr: max_extents. set_gid, set_vlan, set_pkey: index in
	 * the table. set_mtu: bytes.
	 */
	uint32_t value;
	uint64_t context; /* of a CQ, SRQ or QP; post_malformed: wr_id */
	/* req_notify_cq: solicited only. unmapped: done. set_gid: RoCEv1. set_gso: on. */
	bool flag;
	union {
		struct urxe_send_wr send;
		struct urxe_recv_wr recv;
		struct urxe_qp_attr attr;
		struct {
			struct urxe_qp_init init;
			uint64_t send_cq, recv_cq, srq; /* contexts; srq 0: none */
		} qp;
		struct urxe_rq_attr srq;
		struct urxe_mr_attr mr;
		struct urxe_extent bytes;
		struct {
			uint32_t pd;
			uint8_t type;
		} mw;
		struct {
			struct urxe_gid gid;
			bool valid;
		} gid;
		uint16_t u16;
		struct {
			uint32_t n;
			const struct urxe_frame *frames; /* recording: only their rooms are used */
		} output;
	};
	struct call_space *space; /* replay; NULL: recording */
};

/* The kinds of records; a call has RECORD_CALL + enum call_kind. */
enum record_kind {
	RECORD_STATE = 1, /* version, time, a mask of enum record_owner, and the stream of
			     urxe_state_save; the first record */
	RECORD_TIMERS,    /* the order in which timers fire that are due at the same time */
	RECORD_FRAME,     /* a received frame; follows CALL_INPUT */
	RECORD_SENT,      /* this kind and the next four: events of enum urxe_replay_kind */
	RECORD_DROPPED,
	RECORD_COMPLETION,
	RECORD_COMP_EVENT,
	RECORD_ASYNC,
	RECORD_REFILL, /* the engine called urxe_ops.refill; the owner's calls within it follow */
	RECORD_REFILLED,
	RECORD_ANSWER,  /* a callback gave another than its usual answer */
	RECORD_STOPPED, /* the end mark: urxe_record_stop was called */
	RECORD_LOST,    /* the end mark: urxe_recorder.write had no room */
	RECORD_PAGES,   /* the extents that urxe_ops.page_list returned */
	RECORD_CALL = 64,
};

/* What the owner provides, not in a saved state. RECORD_STATE has a mask of these. */
enum record_owner {
	OWNER_COPIES = 1,   /* urxe_dev_attr.copy_ops */
	OWNER_PERSISTS = 2, /* urxe_ops.persist */
	OWNER_LISTS = 4,    /* urxe_ops.page_list */
};

/* Callbacks whose usual answer is not recorded. */
enum record_question {
	QUESTION_GUARD,     /* usually true */
	QUESTION_PULL,      /* usually true */
	QUESTION_PAGE_LIST, /* usually true */
	QUESTION_COMPLETE,  /* usually true */
	QUESTION_PERSIST,   /* usually true */
	QUESTION_PATH_CUT,  /* usually false */
	QUESTION_COUNT
};

struct record_answer {
	uint8_t question;
	uint32_t ordinal; /* how often the engine had asked the question before, within the call */
};

/* Recording: the owner's extents, which are only read. Replay: allocated; the caller frees them,
 * also after an error. */
struct record_extents {
	struct urxe_extent *extents;
	uint32_t n;
};

/* An entry of the timer queue: a QP's timer, or an empty entry. */
struct record_timer {
	uint32_t qpn;    /* 0: an empty entry, in place of a removed timer */
	uint8_t kind;    /* timer.kind */
	uint8_t number;  /* timers_place.number */
	uint64_t queued; /* ns */
};

/* A received frame. */
struct record_frame {
	bool without_icrc, from_wire, whole;
	uint32_t len;
	uint32_t reference, packets; /* urxe_reference.length and packets */
	uint32_t digest;             /* unless `whole` */
	const uint8_t *data;         /* if `whole` */
};

const char *call_name(enum call_kind kind);
/* The fields of a record, without its header. */
void call_fields(struct state_stream *s, struct call *call);
void frame_fields(struct state_stream *s, struct record_frame *frame);
void timer_fields(struct state_stream *s, struct record_timer *timer);
void answer_fields(struct state_stream *s, struct record_answer *answer);
void extents_fields(struct state_stream *s, struct record_extents *list);
/* The fields of an event that the engine caused; the caller has set event->kind. The data of a sent
 * frame is at most URXE_RECORD_HEADERS bytes. Replay: the data points into the stream. */
void event_fields(struct state_stream *s, struct urxe_replay_event *event);
/* The kind of record that has an event of this kind. */
enum record_kind event_record(enum urxe_replay_kind kind);

/* Sets data, data_len and frame_len for a frame that urxe_output wrote: its headers, without the
 * original value of an atomic. */
void event_set_headers(struct urxe_replay_event *event, const struct urxe_frame *frame);

#endif
