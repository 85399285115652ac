/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The records of a stream. One function for each record both saves and restores it. state_save.c
 * passes the object to the functions of whole objects (CQ, MR, fast MR, MW, SRQ, QP, group).
 * state_restore.c passes NULL to them, and they create the object. The functions of parts get the
 * object in both directions. After an error of a restoration the caller destroys the device with
 * the objects that it has so far.
 */
#ifndef URXE_STATE_STATE_RECORDS_H
#define URXE_STATE_STATE_RECORDS_H

#include <rxe/state.h>
#include <rxe/state_stream.h>

#include "objects/qp.h"
#include "record/fields.h"

struct urxe_cq;
struct urxe_dev;
struct urxe_fast_mr;
struct urxe_mr;
struct urxe_mw;
struct urxe_rq;

/* The kinds of records, in the order in which a stream has them; not enum urxe_state_kind. */
enum state_record {
	STATE_RECORD_DEVICE = 1,
	STATE_RECORD_CQ,
	STATE_RECORD_MR,
	STATE_RECORD_FAST_MR,
	STATE_RECORD_SRQ,
	STATE_RECORD_QP,
	STATE_RECORD_MW,
	STATE_RECORD_GROUP,
	STATE_RECORD_READY, /* QPs that may have something to send */
	STATE_RECORD_COMPLETIONS,
	STATE_RECORD_END,
	/* Parts of STATE_RECORD_QP, in their order. */
	STATE_RECORD_QP_ATTR = 32,
	STATE_RECORD_QP_SENDS,
	STATE_RECORD_QP_RECEIVES,
	STATE_RECORD_QP_REQUESTER,
	STATE_RECORD_QP_RESPONDER,
	STATE_RECORD_QP_RESOURCES,
	STATE_RECORD_QP_GAP, /* the gap, and the packets kept behind it */
	STATE_RECORD_QP_CONGESTION,
};

extern const struct state_format device_format;

/* A list of objects of one kind. */
struct state_list {
	void **object;
	uint32_t n;
	uint32_t room;
};

/* A stream, the device, and what the owner provides. */
struct state_device {
	struct state_stream stream; /* some functions get only this member */
	struct urxe_dev *dev;
	const struct urxe_state_save *save;
	const struct urxe_state_restore *restore;
	/* In the order of the stream. Restoring fills only the lists of CQs and SRQs. */
	struct state_list cqs, srqs, qps, mrs, mws, fast_mrs;
	struct urxe_state_object *restored;
	uint32_t n_restored;
	uint32_t room;
};

/* Appends an object; -ENOMEM becomes the error of the stream. */
void state_list_add(struct state_device *d, struct state_list *list, void *object);
void state_list_free(struct state_list *list);

void device_attr_record(struct state_stream *s, struct urxe_dev_attr *attr,
			struct urxe_dcqcn *dcqcn);
void device_record(struct state_device *d);
void counters_record(struct state_stream *s, struct urxe_counters *counters);

void cq_record(struct state_device *d, struct urxe_cq *cq);
/* The completions of a CQ that the program has not taken. Saving: i is the index of the CQ in
 * d->cqs. Restoring: the stream has the index, and i has no effect. */
void completions_record(struct state_device *d, uint32_t i);
/* A field that names a CQ by its index in the stream; restoring sets *cq. */
void cq_field(struct state_device *d, struct urxe_cq **cq);

void mr_record(struct state_device *d, struct urxe_mr *mr);
void fast_mr_record(struct state_device *d, struct urxe_fast_mr *fast);
void mw_record(struct state_device *d, struct urxe_mw *mw);

void srq_record(struct state_device *d, struct urxe_rq *srq);
void srq_field(struct state_device *d, struct urxe_rq **srq);
/* The requests of a QP's own receive queue, or the request that the QP has taken from a SRQ. */
void receives_record(struct state_stream *s, struct urxe_qp *qp);
void sends_record(struct state_stream *s, struct urxe_qp *qp);
/* Bytes of memory that the requests of a receive queue take; max_wr and max_sge must be valid. */
uint64_t rq_memory(uint32_t max_wr, uint32_t max_sge);

void qp_record(struct state_device *d, struct urxe_qp *qp);
/* Bytes of memory that a QP takes with its queues; init->cap must be valid. */
uint64_t qp_memory(const struct urxe_dev *dev, const struct urxe_qp_init *init);
void qp_attr_record(struct state_stream *s, struct urxe_qp *qp);
void requester_record(struct state_stream *s, struct urxe_qp *qp);
/* Whether the requester's PSNs agree with its send queue. Otherwise the engine would read outside
 * of the queue. */
bool is_requester_consistent(const struct urxe_qp *qp);
void responder_record(struct state_stream *s, struct urxe_qp *qp);
void resources_record(struct state_stream *s, struct urxe_qp *qp);
void gap_record(struct state_stream *s, struct urxe_qp *qp);
void congestion_record(struct state_stream *s, struct urxe_qp *qp);
void timer_field(struct state_stream *s, struct urxe_qp *qp, struct timer *timer);

/* The members of a multicast group; `group` is NULL when restoring. */
struct mcast_group;
void group_record(struct state_device *d, const struct mcast_group *group);
/* The QPs that may have something to send, in the order of dev->ready. */
void ready_record(struct state_device *d);

/* Restoring: returns the context that the owner chooses for an object (urxe_state_restore). */
void *object_context(struct state_device *d, enum urxe_state_kind kind, uint32_t id, uint64_t tag);
/* Restoring: notes the object, so that urxe_state_restore.restored is called for it at the end. */
void object_restored(struct state_device *d, const struct urxe_state_object *object);
/* Saving: returns the owner's tag of the object with this context (urxe_state_save). */
uint64_t object_tag(struct state_device *d, enum urxe_state_kind kind, void *ctx);

#endif
