/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* urxe_replay: repeats the calls of a recording. It compares each action of the restored device
 * within a call with the next record behind the call; the first difference ends the replay. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device/qp_lifecycle.h"
#include "memory/mr.h"
#include "objects/cq.h"
#include "objects/device.h"
#include "objects/qp.h"
#include "objects/rq.h"
#include "record/device_recording.h"
#include "state/state_records.h"

struct player {
	struct urxe_replay *replay;
	struct state_stream stream; /* its first error is that of the recording */
	struct urxe_dev *dev;
	int result; /* 0; or -ENOENT or -EILSEQ, which ends the replay */
	uint32_t questions[QUESTION_COUNT];
	uint8_t *out;                      /* buffers for the frames of urxe_output */
	struct device_recording recording; /* the device's, which names this player */
	struct urxe_ops ops;               /* of the device */
	struct record_extents pages;       /* the newest answer of page_list */
};

static bool goes_on(const struct player *p)
{
	return state_ok(&p->stream) && !p->result;
}

/* The kind of the next record; 0: the recording ends here, or is cut within the record. */
static uint32_t next_kind(const struct player *p)
{
	return goes_on(p) ? state_next_record(&p->stream) : 0;
}

/* --- Comparison. */

/* Copies an event and its data to the results of urxe_replay. */
static void keep_event(struct urxe_replay_event *to, uint8_t data[URXE_RECORD_HEADERS],
		       const struct urxe_replay_event *event)
{
	*to = *event;
	if (!event->data)
		return;
	to->data_len =
		event->data_len < URXE_RECORD_HEADERS ? event->data_len : URXE_RECORD_HEADERS;
	memcpy(data, event->data, to->data_len);
	to->data = data;
}

static void differ(struct player *p, const struct urxe_replay_event *expected,
		   const struct urxe_replay_event *actual)
{
	struct urxe_replay *r = p->replay;

	if (!goes_on(p))
		return;
	p->result = -EILSEQ;
	r->has_expected = expected;
	r->has_actual = actual;
	if (expected)
		keep_event(&r->expected, r->expected_data, expected);
	if (actual)
		keep_event(&r->actual, r->actual_data, actual);
}

static bool is_same_completion(const struct urxe_wc *a, const struct urxe_wc *b)
{
	if (a->wr_id != b->wr_id || a->status != b->status || a->qpn != b->qpn)
		return false;
	return a->status != URXE_WC_SUCCESS ||
	       (a->opcode == b->opcode && a->byte_len == b->byte_len && a->imm == b->imm &&
		a->invalidated_key == b->invalidated_key && a->src_qpn == b->src_qpn &&
		a->flags == b->flags && a->pkey_index == b->pkey_index && a->sl == b->sl &&
		a->net == b->net && a->solicited == b->solicited);
}

static bool is_same_event(const struct urxe_replay_event *a, const struct urxe_replay_event *b)
{
	if (a->kind != b->kind)
		return false;
	switch (a->kind) {
	case URXE_REPLAY_SENT:
		return a->frame_len == b->frame_len && a->data_len == b->data_len &&
		       !memcmp(a->data, b->data, a->data_len);
	case URXE_REPLAY_DROPPED: return a->drop == b->drop;
	case URXE_REPLAY_COMPLETION:
		return a->context == b->context && is_same_completion(&a->wc, &b->wc);
	case URXE_REPLAY_ASYNC: return a->context == b->context && a->async == b->async;
	default: return a->context == b->context;
	}
}

/* Reads the event of the next record. False: the next record has no event, or is damaged. */
static bool read_event(struct player *p, struct urxe_replay_event *event)
{
	const uint32_t kind = next_kind(p);

	if (kind < RECORD_SENT || kind > RECORD_ASYNC)
		return false;
	*event = (struct urxe_replay_event){
		.kind = (uint8_t)(URXE_REPLAY_SENT + (kind - RECORD_SENT)), .time = p->dev->now};
	state_begin(&p->stream, kind);
	event_fields(&p->stream, event);
	state_end(&p->stream);
	return state_ok(&p->stream);
}

static void report(struct player *p, struct urxe_replay_event *event)
{
	event->time = p->dev->now;
	event->wc.qp_ctx = NULL;
	if (p->replay->event)
		p->replay->event(p->replay->arg, event);
}

/* Compares an event of the device with the next record. */
static void player_event(struct player *p, struct urxe_replay_event *actual)
{
	struct urxe_replay_event expected;

	actual->time = p->dev->now;
	actual->wc.qp_ctx = NULL;
	/* Without a next record the replay has ended, or the recording is cut within the call. */
	if (!goes_on(p) || !next_kind(p))
		return;
	if (!read_event(p, &expected))
		differ(p, NULL, actual);
	else if (!is_same_event(&expected, actual))
		differ(p, &expected, actual);
	else
		report(p, actual);
}

/* At the end of a call: if the next record belongs to the call, the device has done too little. */
static void expect_no_more(struct player *p)
{
	struct urxe_replay_event expected;
	const uint32_t kind = next_kind(p);

	if (!kind || kind >= RECORD_CALL || kind == RECORD_STOPPED || kind == RECORD_LOST ||
	    kind == RECORD_REFILLED)
		return;
	if (read_event(p, &expected))
		differ(p, &expected, NULL);
	else
		differ(p, NULL, NULL);
}

static bool player_answer(struct player *p, enum record_question question)
{
	const bool usual = question < QUESTION_PATH_CUT;
	const uint32_t ordinal = p->questions[question]++;
	struct state_stream before = p->stream;
	struct record_answer fields = {0};

	if (next_kind(p) != RECORD_ANSWER)
		return usual;
	state_begin(&p->stream, RECORD_ANSWER);
	answer_fields(&p->stream, &fields);
	state_end(&p->stream);
	if (!state_ok(&p->stream) || (fields.question == question && fields.ordinal == ordinal))
		return !usual;
	p->stream = before;
	return usual;
}

/* --- Callbacks of the owner. The contexts of objects are numbers of the recording. */

static bool take_completion(void *cq_ctx, const struct urxe_wc *wc)
{
	(void)cq_ctx;
	(void)wc;
	return true;
}

static void ignore_context(void *ctx)
{
	(void)ctx;
}

static void ignore_async(void *dev_ctx, enum urxe_async event, void *ctx)
{
	(void)dev_ctx;
	(void)event;
	(void)ctx;
}

/* Touches nothing and returns true, because a replay has no memory of regions. So the payload of a
 * sent frame is what the frame's buffer had before. */
static bool skip_access(void *dev_ctx, const struct urxe_extent *bytes, void (*touch)(void *arg),
			void *arg)
{
	(void)dev_ctx;
	(void)bytes;
	(void)touch;
	(void)arg;
	return true;
}

static bool skip_pull(void *dev_ctx, const struct urxe_reference *reference,
		      const struct urxe_extent *to, uint32_t n)
{
	(void)dev_ctx;
	(void)reference;
	(void)to;
	(void)n;
	return true;
}

static bool skip_persist(void *dev_ctx, const struct urxe_extent *bytes)
{
	(void)dev_ctx;
	(void)bytes;
	return true;
}

static bool list_pages(void *dev_ctx, const struct urxe_fast_reg *request,
		       const struct urxe_extent **extents, uint32_t *n_extents)
{
	struct player *p = dev_ctx;

	(void)request;
	free(p->pages.extents);
	p->pages = (struct record_extents){0};
	if (next_kind(p) == RECORD_PAGES) {
		state_begin(&p->stream, RECORD_PAGES);
		extents_fields(&p->stream, &p->pages);
		state_end(&p->stream);
	}
	*extents = p->pages.extents;
	*n_extents = p->pages.n;
	return true;
}

/* Returns NULL: the recorded device, too, reached no peer by the copy transport. */
static const struct urxe_copy_table *find_no_table(void *ctx, const uint8_t mac[6], uint32_t qpn)
{
	(void)ctx;
	(void)mac;
	(void)qpn;
	return NULL;
}

static const struct urxe_copy_ops copy_ops = {.table = find_no_table};

static const struct urxe_ops all_ops = {
	.complete = take_completion,
	.comp_event = ignore_context,
	.refill = ignore_context,
	.async_event = ignore_async,
	.guard = skip_access,
	.pull = skip_pull,
	.page_list = list_pages,
	.persist = skip_persist,
};

static void *context_of(void *arg, const struct urxe_state_object *object)
{
	(void)arg;
	return (void *)(uintptr_t)object->tag;
}

/* --- Calls. */

static struct urxe_cq *find_cq(struct player *p, uint64_t context)
{
	struct urxe_cq *cq;

	LIST_FOREACH(cq, &p->dev->cqs, link)
	{
		if ((uintptr_t)cq->ctx == context)
			return cq;
	}
	state_fail(&p->stream, -EBADMSG);
	return NULL;
}

static struct urxe_rq *find_srq(struct player *p, uint64_t context)
{
	struct urxe_rq *srq;

	LIST_FOREACH(srq, &p->dev->srqs, link)
	{
		if ((uintptr_t)srq->attr.ctx == context)
			return srq;
	}
	state_fail(&p->stream, -EBADMSG);
	return NULL;
}

static void *find_in(struct player *p, struct idmap *map, uint32_t id)
{
	void *object = idmap_find(map, id);

	state_require(&p->stream, object);
	return object;
}

/*
 * Takes the bytes of a queue pair, SRQ or fast registration from the limit max_bytes until the
 * object is destroyed: a recording of a few bytes can ask for queues of megabytes. CQs, regions and
 * windows take nothing, because the length of the recording limits their number.
 */
static void spend_replay_memory(struct player *p, uint64_t bytes)
{
	if (p->replay->max_bytes)
		state_spend(&p->stream, 1, bytes);
}

static void return_replay_memory(struct player *p, uint64_t bytes)
{
	if (p->replay->max_bytes)
		p->stream.budget += bytes;
}

static uint64_t memory_of_qp(const struct urxe_qp *qp)
{
	struct urxe_qp_init init;
	struct urxe_qp_attr attr;

	urxe_qp_query(qp, &attr, &init);
	return qp_memory(qp->dev, &init);
}

static uint64_t memory_of_srq(const struct urxe_rq *srq)
{
	return rq_memory(srq->attr.max_wr, srq->attr.max_sge);
}

static uint64_t memory_of_fast(uint32_t max_extents)
{
	return max_extents * sizeof(struct mr_piece);
}

static void create_qp(struct player *p, struct call *call)
{
	struct urxe_qp_init *init = &call->qp.init;
	struct urxe_qp *qp;

	init->ctx = (void *)(uintptr_t)call->context;
	init->qpn = call->qpn;
	init->send_cq = find_cq(p, call->qp.send_cq);
	init->recv_cq = find_cq(p, call->qp.recv_cq);
	if (call->qp.srq)
		init->srq = find_srq(p, call->qp.srq);
	/* urxe_qp_create checks the sizes of the queues. */
	if (state_ok(&p->stream) && !urxe_qp_create(p->dev, init, &qp))
		spend_replay_memory(p, memory_of_qp(qp));
}

static void destroy_qp(struct player *p, struct urxe_qp *qp)
{
	return_replay_memory(p, memory_of_qp(qp));
	urxe_qp_destroy(qp);
}

static void create_srq(struct player *p, struct call *call)
{
	struct urxe_rq *srq;

	call->srq.ctx = (void *)(uintptr_t)call->context;
	if (!urxe_srq_create(p->dev, &call->srq, &srq))
		spend_replay_memory(p, memory_of_srq(srq));
}

static void destroy_srq(struct player *p, struct urxe_rq *srq)
{
	const uint64_t bytes = memory_of_srq(srq);

	if (!urxe_srq_destroy(srq))
		return_replay_memory(p, bytes);
}

static void resize_srq(struct player *p, struct urxe_rq *srq, uint32_t max_wr)
{
	return_replay_memory(p, memory_of_srq(srq));
	urxe_srq_resize(srq, max_wr);
	spend_replay_memory(p, memory_of_srq(srq));
}

static void call_srq(struct player *p, const struct call *call)
{
	struct urxe_rq *srq = find_srq(p, call->context);

	if (!srq)
		return;
	switch (call->kind) {
	case CALL_POST_SRQ: urxe_post_recv(srq, &call->recv); break;
	case CALL_SRQ_DESTROY: destroy_srq(p, srq); break;
	case CALL_SRQ_LIMIT: urxe_srq_set_limit(srq, call->value); break;
	case CALL_SRQ_RESIZE: resize_srq(p, srq, call->value); break;
	default: break;
	}
}

static void call_cq(struct player *p, const struct call *call)
{
	struct urxe_cq *cq = NULL;

	if (call->kind == CALL_CQ_CREATE) {
		urxe_cq_create(p->dev, (void *)(uintptr_t)call->context, &cq);
		return;
	}
	cq = find_cq(p, call->context);
	if (cq && call->kind == CALL_CQ_ARM)
		urxe_cq_arm(cq, call->flag);
	else if (cq)
		urxe_cq_destroy(cq);
}

static void post_recv(struct player *p, struct urxe_qp *qp, const struct call *call)
{
	struct urxe_rq *rq = urxe_qp_rq(qp);

	state_require(&p->stream, rq);
	if (rq)
		urxe_post_recv(rq, &call->recv);
}

static void call_qp(struct player *p, struct call *call)
{
	struct urxe_qp *qp = find_in(p, &p->dev->qps, call->qpn);

	if (!qp)
		return;
	switch (call->kind) {
	case CALL_POST_SEND: urxe_post_send(qp, &call->send); break;
	case CALL_POST_MALFORMED:
		state_require(&p->stream, call->value <= URXE_WC_RNR_RETRY_EXC_ERR);
		if (state_ok(&p->stream))
			urxe_post_malformed(qp, call->context, (enum urxe_wc_status)call->value);
		break;
	case CALL_POST_RECV: post_recv(p, qp, call); break;
	case CALL_QP_EXECUTE: urxe_qp_execute(qp, call->now); break;
	case CALL_QP_MODIFY: urxe_qp_modify(qp, call->now, &call->attr, call->value); break;
	case CALL_QP_DESTROY: destroy_qp(p, qp); break;
	case CALL_QP_FLUSH_ACKS: urxe_qp_flush_acks(qp); break;
	case CALL_MCAST_ATTACH: urxe_mcast_attach(qp, &call->gid.gid); break;
	case CALL_MCAST_DETACH: urxe_mcast_detach(qp, &call->gid.gid); break;
	default: break;
	}
}

/* The region of the call; NULL: there is none, which is an error. A call that unmaps memory may
 * name the region of a fast registration, which mr_find finds in dev->fast_mrs. */
static struct urxe_mr *find_region(struct player *p, const struct call *call)
{
	struct urxe_mr *mr;

	if (call->kind == CALL_MR_REREG || call->kind == CALL_MR_DEREG)
		return find_in(p, &p->dev->mrs, call->key);
	mr = mr_find(p->dev, call->key);
	state_require(&p->stream, mr);
	return mr;
}

static void call_mr(struct player *p, struct call *call)
{
	struct urxe_mr *mr = NULL;

	if (call->kind == CALL_MR_REG) {
		urxe_mr_reg(p->dev, &call->mr, &mr);
		return;
	}
	mr = find_region(p, call);
	if (!mr)
		return;
	switch (call->kind) {
	case CALL_MR_REREG: urxe_mr_rereg(&mr, &call->mr); break;
	case CALL_MR_DEREG: urxe_mr_dereg(mr); break;
	case CALL_MR_UNMAP: urxe_mr_unmap(mr, &call->bytes); break;
	case CALL_MR_UNMAP_ALL: urxe_mr_unmap_all(mr); break;
	case CALL_MR_UNMAPPED: urxe_mr_unmapped(mr, &call->bytes, call->flag); break;
	default: break;
	}
}

static void alloc_fast(struct player *p, const struct call *call)
{
	struct urxe_fast_mr *fast;

	spend_replay_memory(p, memory_of_fast(call->value));
	if (state_ok(&p->stream))
		urxe_fast_mr_alloc(p->dev, call->mw.pd, call->value, &fast);
}

static void free_fast(struct player *p, struct urxe_fast_mr *fast)
{
	const uint64_t bytes = memory_of_fast(fast->max_extents);

	if (!urxe_fast_mr_free(fast))
		return_replay_memory(p, bytes);
}

static void call_window(struct player *p, const struct call *call)
{
	const struct urxe_mw_attr attr = {
		.pd = call->mw.pd, .type = call->mw.type, .key = call->key};
	struct urxe_fast_mr *fast;
	struct urxe_mw *mw;

	switch (call->kind) {
	case CALL_MW_ALLOC: urxe_mw_alloc(p->dev, &attr, &mw); break;
	case CALL_MW_DEALLOC:
		mw = find_in(p, &p->dev->mws, call->key >> 8);
		if (mw)
			urxe_mw_dealloc(mw);
		break;
	case CALL_FAST_ALLOC: alloc_fast(p, call); break;
	default:
		fast = find_in(p, &p->dev->fast_mrs, call->key >> 8);
		if (fast)
			free_fast(p, fast);
	}
}

/* A save is repeated, because the device then forgets what is not in the stream. */
static void save_device(struct player *p, const struct call *call)
{
	const struct urxe_state_save how = {.tag = NULL};
	uint8_t *state;
	size_t length;

	if (!urxe_state_save(p->dev, call->now, &how, &state, &length))
		urxe_state_free(state);
}

static void call_device(struct player *p, const struct call *call)
{
	switch (call->kind) {
	case CALL_SAVE: save_device(p, call); break;
	case CALL_GID_SET:
		urxe_gid_set(p->dev, call->value, call->gid.valid ? &call->gid.gid : NULL,
			     call->flag);
		break;
	case CALL_GID_VLAN: urxe_gid_set_vlan(p->dev, call->value, call->u16); break;
	case CALL_PKEY_SET: urxe_pkey_set(p->dev, call->value, call->u16); break;
	case CALL_LINK_MTU: urxe_link_mtu_set(p->dev, call->value); break;
	case CALL_SET_GSO: urxe_dev_set_gso(p->dev, call->flag); break;
	default: break;
	}
}

/* --- Frames. */

/* Reads the record of a received frame, and finds its bytes. */
static void find_frame(struct player *p, struct urxe_frame *frame)
{
	struct urxe_replay_event event = {.kind = URXE_REPLAY_RECEIVED};
	struct record_frame fields = {0};

	state_begin(&p->stream, RECORD_FRAME);
	frame_fields(&p->stream, &fields);
	state_end(&p->stream);
	if (!state_ok(&p->stream))
		return;
	event.data = fields.whole ? fields.data
				  : p->replay->frame(p->replay->arg, fields.len, fields.digest);
	if (!event.data) {
		p->result = -ENOENT;
		return;
	}
	/* The engine may read URXE_ICRC_LEN bytes behind a frame without an ICRC, and lengths in
	 * the frame's headers count these bytes. */
	if (fields.without_icrc) {
		event.data = memcpy(p->out, event.data, fields.len);
		fields.len += URXE_ICRC_LEN;
		urxe_frame_add_icrc(p->out, fields.len);
	}
	event.data_len = event.frame_len = fields.len;
	*frame = (struct urxe_frame){
		.data = (uint8_t *)(uintptr_t)event.data,
		.len = fields.len,
		.without_icrc = fields.without_icrc,
		.from_wire = fields.from_wire,
		.reference = {.length = fields.reference, .packets = fields.packets},
	};
	report(p, &event);
}

/* Passes the frames of the call to the device one by one, because a captured frame is valid only
 * until the next one is found. */
static void input(struct player *p, const struct call *call)
{
	for (uint32_t i = 0; i < call->value && goes_on(p); i++) {
		struct urxe_frame frame;

		if (next_kind(p) != RECORD_FRAME)
			return;
		find_frame(p, &frame);
		if (goes_on(p))
			urxe_input(p->dev, call->now, &frame, 1);
	}
}

static void output(struct player *p, const struct call *call)
{
	struct urxe_frame frames[CALL_FRAMES];
	const uint32_t least = p->dev->attr.mtu + 18;

	for (uint32_t i = 0; i < call->output.n; i++) {
		state_require(&p->stream, call->space->room[i] >= least);
		frames[i] = (struct urxe_frame){.data = p->out + (size_t)i * CALL_FRAME_ROOM,
						.room = call->space->room[i]};
	}
	if (state_ok(&p->stream))
		urxe_output(p->dev, call->now, frames, call->output.n);
}

static void make_call(struct player *p, struct call *call)
{
	switch (call->kind) {
	case CALL_INPUT: input(p, call); break;
	case CALL_OUTPUT: output(p, call); break;
	case CALL_POST_SEND:
	case CALL_POST_MALFORMED:
	case CALL_POST_RECV:
	case CALL_QP_EXECUTE:
	case CALL_QP_MODIFY:
	case CALL_QP_DESTROY:
	case CALL_QP_FLUSH_ACKS:
	case CALL_MCAST_ATTACH:
	case CALL_MCAST_DETACH: call_qp(p, call); break;
	case CALL_QP_CREATE: create_qp(p, call); break;
	case CALL_SRQ_CREATE: create_srq(p, call); break;
	case CALL_POST_SRQ:
	case CALL_SRQ_DESTROY:
	case CALL_SRQ_LIMIT:
	case CALL_SRQ_RESIZE: call_srq(p, call); break;
	case CALL_CQ_CREATE:
	case CALL_CQ_ARM:
	case CALL_CQ_DESTROY: call_cq(p, call); break;
	case CALL_MR_REG:
	case CALL_MR_REREG:
	case CALL_MR_DEREG:
	case CALL_MR_UNMAP:
	case CALL_MR_UNMAP_ALL:
	case CALL_MR_UNMAPPED: call_mr(p, call); break;
	case CALL_MW_ALLOC:
	case CALL_MW_DEALLOC:
	case CALL_FAST_ALLOC:
	case CALL_FAST_FREE: call_window(p, call); break;
	default: call_device(p, call); break;
	}
}

/* --- The recording. */

/* Most timers of a recording: four for each QPN. */
#define TIMERS_MAX (UINT32_C(4) << 24)
/* Recorded times are below this limit, so that the engine can add a timeout to a time. */
#define TIME_MAX (UINT64_C(1) << 62)

static void report_call(struct player *p, const struct call *call)
{
	struct urxe_replay_event event = {
		.kind = URXE_REPLAY_CALL, .call = call_name(call->kind), .qpn = call->qpn};

	if (call->kind != CALL_INPUT && call->kind != CALL_OUTPUT)
		report(p, &event);
}

static void play_call(struct player *p, uint32_t kind)
{
	struct call_space space = {.extents = NULL};
	struct call call = {.kind = (enum call_kind)(kind - RECORD_CALL), .space = &space};

	state_begin(&p->stream, kind);
	call_fields(&p->stream, &call);
	state_end(&p->stream);
	state_require(&p->stream, call.now < TIME_MAX);
	memset(p->questions, 0, sizeof(p->questions));
	if (state_ok(&p->stream)) {
		report_call(p, &call);
		make_call(p, &call);
		p->replay->calls++;
	}
	free(space.extents);
}

static bool is_call(uint32_t kind)
{
	return kind >= RECORD_CALL && kind < RECORD_CALL + CALL_COUNT;
}

static void player_refill(struct player *p)
{
	uint32_t kind = next_kind(p);

	if (!kind || kind != RECORD_REFILL) {
		if (kind)
			differ(p, NULL, NULL);
		return;
	}
	state_begin(&p->stream, RECORD_REFILL);
	state_end(&p->stream);
	while ((kind = next_kind(p)) && kind != RECORD_REFILLED) {
		state_require(&p->stream, kind == RECORD_CALL + CALL_POST_RECV ||
						  kind == RECORD_CALL + CALL_POST_SRQ);
		if (!state_ok(&p->stream))
			return;
		play_call(p, kind);
	}
	if (kind) {
		state_begin(&p->stream, RECORD_REFILLED);
		state_end(&p->stream);
	}
}

static void play_calls(struct player *p)
{
	uint32_t kind;

	while ((kind = next_kind(p)) && is_call(kind)) {
		play_call(p, kind);
		p->replay->time = p->dev->now;
		expect_no_more(p);
	}
	p->replay->has_end = kind == RECORD_STOPPED;
	p->replay->lost = kind == RECORD_LOST;
	state_require(&p->stream, !kind || p->replay->has_end || p->replay->lost);
}

/* Gives the device the callbacks that the recorded device had. */
static void set_owner(struct player *p, struct urxe_dev_attr *attr, uint32_t owner)
{
	p->ops = all_ops;
	if (!(owner & OWNER_PERSISTS))
		p->ops.persist = NULL;
	if (!(owner & OWNER_LISTS))
		p->ops.page_list = NULL;
	attr->ctx = p;
	attr->ops = &p->ops;
	attr->copy_ops = owner & OWNER_COPIES ? &copy_ops : NULL;
}

static int restore_device(struct player *p, const uint8_t *state, size_t length, uint64_t now,
			  uint32_t owner)
{
	const struct urxe_state_restore how = {
		.arg = p,
		.context = context_of,
		.memory = urxe_state_same_memory,
		.max_bytes = p->replay->max_bytes,
	};
	struct urxe_state_attr saved;
	int rc = urxe_state_read_attr(state, length, &saved);

	if (rc)
		return rc;
	set_owner(p, &saved.attr, owner);
	rc = urxe_state_restore(&saved.attr, now, &how, state, length, &p->dev);
	if (!rc)
		p->dev->recording = &p->recording;
	return rc;
}

/* Restores the device from the first record. -EBADMSG: the first record has no state;
 * -EPROTONOSUPPORT: the record has another version; or an error of the restoration. */
static int begin_device(struct player *p)
{
	struct state_stream *s = &p->stream;
	uint32_t version = 0, owner = 0;
	uint64_t now = 0;
	const uint8_t *state;
	size_t length;

	if (next_kind(p) != RECORD_STATE)
		return -EBADMSG;
	state_begin(&p->stream, RECORD_STATE);
	state_u32(s, &version);
	state_u64(s, &now);
	state_u32(s, &owner);
	state_require(s, now < TIME_MAX);
	if (!state_ok(s))
		return s->error;
	if (version != URXE_RECORD_VERSION)
		return -EPROTONOSUPPORT;
	length = state_left(s);
	state = state_take(s, length);
	state_end(&p->stream);
	return restore_device(p, state, length, now, owner);
}

static void put_timer(struct player *p)
{
	struct record_timer fields = {0};
	struct timer *timer;
	struct urxe_qp *qp;

	timer_fields(&p->stream, &fields);
	if (!fields.qpn) {
		state_require(&p->stream,
			      timers_put_empty(&p->dev->timers, fields.number, fields.queued));
		return;
	}
	qp = find_in(p, &p->dev->qps, fields.qpn);
	timer = qp ? qp_find_timer(qp, fields.kind) : NULL;
	state_require(&p->stream,
		      timer && timers_put(&p->dev->timers, fields.number, timer, fields.queued));
}

/* Puts the timers in their places in the queue, so that they fire in the same order. */
static void place_timers(struct player *p)
{
	struct state_stream *s = &p->stream;
	uint32_t room = 0, at = 0;
	struct urxe_qp *qp;

	if (next_kind(p) != RECORD_TIMERS)
		return;
	state_begin(&p->stream, RECORD_TIMERS);
	state_u32_max(s, &room, TIMERS_MAX);
	spend_replay_memory(p, UINT64_C(64) * room);
	if (state_ok(s) && timers_reserve(&p->dev->timers, room))
		state_fail(s, -ENOMEM);
	timers_clear(&p->dev->timers);
	while (state_ok(s) && s->at < s->end)
		put_timer(p);
	state_end(&p->stream);
	while ((qp = idmap_next(&p->dev->qps, &at)))
		for (uint8_t kind = 0; qp_find_timer(qp, kind); kind++)
			timers_put_armed(&p->dev->timers, qp_find_timer(qp, kind));
}

static void end_device(struct player *p)
{
	/* urxe_dev_destroy would write the end mark of a recording. */
	p->dev->recording = NULL;
	urxe_dev_destroy(p->dev);
}

static const struct player_ops player_ops = {
	.event = player_event,
	.answer = player_answer,
	.refill = player_refill,
};

int urxe_replay(struct urxe_replay *replay, const uint8_t *recording, size_t length)
{
	struct player p = {
		.replay = replay,
		.stream = {.restoring = true,
			   .version = URXE_STATE_VERSION,
			   .budget = replay->max_bytes ? replay->max_bytes : UINT64_MAX,
			   .in = recording,
			   .end = length},
		.recording = {.player = &p, .replay = &player_ops},
	};
	int rc = begin_device(&p);

	if (rc)
		return rc;
	p.out = calloc(CALL_FRAMES, CALL_FRAME_ROOM);
	place_timers(&p);
	if (p.out)
		play_calls(&p);
	else
		p.result = -ENOMEM;
	free(p.out);
	free(p.pages.extents);
	end_device(&p);
	return p.result ? p.result : p.stream.error;
}
