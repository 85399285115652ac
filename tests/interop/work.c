/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "work.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PATIENCE_S 60 /* timeout of a completion, for emulated processors */

_Static_assert((int)URXE_WR_SEND == IBV_WR_SEND &&
		       (int)URXE_WR_FETCH_ADD == IBV_WR_ATOMIC_FETCH_AND_ADD &&
		       (int)URXE_WR_BIND_MW == IBV_WR_BIND_MW &&
		       (int)URXE_WR_SEND_INV == IBV_WR_SEND_WITH_INV,
	       "operations");
_Static_assert((int)URXE_WC_RNR_RETRY_EXC_ERR == IBV_WC_RNR_RETRY_EXC_ERR, "statuses");
_Static_assert((int)URXE_SEND_FENCE == IBV_SEND_FENCE &&
		       (int)URXE_SEND_SOLICITED == IBV_SEND_SOLICITED &&
		       (int)URXE_SEND_INLINE == IBV_SEND_INLINE,
	       "flags");
_Static_assert((int)URXE_QPS_RTS == IBV_QPS_RTS && (int)URXE_QPS_ERR == IBV_QPS_ERR, "states");

struct reason {
	char *text;
	size_t room;
};

static bool wrong(struct reason *why, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static bool wrong(struct reason *why, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why->text, why->room, format, args);
	va_end(args);
	return false;
}

/* --- Posting. */

static struct ibv_sge segment(const struct objects *o, const struct place *place)
{
	return (struct ibv_sge){(uintptr_t)o->memory[place->region] + place->offset, place->length,
				o->mr[place->region]->lkey};
}

static int post_recv(struct objects *o, const struct step *step, uint64_t wr_id)
{
	struct ibv_sge sge = segment(o, &step->place);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	return o->srq ? ibv_post_srq_recv(o->srq, &wr, &bad)
		      : ibv_post_recv(o->qp[step->connection], &wr, &bad);
}

static struct ibv_mw *find_window(const struct objects *o, uint32_t key)
{
	for (unsigned i = 0; i < o->n_mw; i++)
		if (o->mw[i]->rkey == key)
			return o->mw[i];
	return NULL;
}

static void add_bind(const struct objects *o, const struct step *step, struct ibv_send_wr *wr)
{
	const struct urxe_mw_bind *bind = &step->send.bind;

	wr->bind_mw.mw = find_window(o, bind->mw_key);
	wr->bind_mw.rkey = (bind->mw_key & ~0xffu) | bind->tag;
	wr->bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = o->mr[step->place.region],
		.addr = bind->addr,
		.length = bind->length,
		.mw_access_flags = bind->access,
	};
}

static void add_operation(const struct objects *o, const struct step *step, struct ibv_send_wr *wr)
{
	const struct urxe_send_wr *send = &step->send;

	switch (send->opcode) {
	case URXE_WR_SEND_IMM: wr->imm_data = send->imm; break;
	case URXE_WR_RDMA_WRITE_IMM: wr->imm_data = send->imm; /* fall through */
	case URXE_WR_RDMA_WRITE:
	case URXE_WR_RDMA_READ:
		wr->wr.rdma.remote_addr = send->remote_addr;
		wr->wr.rdma.rkey = send->rkey;
		break;
	case URXE_WR_COMPARE_SWAP:
	case URXE_WR_FETCH_ADD:
		wr->wr.atomic.remote_addr = send->remote_addr;
		wr->wr.atomic.rkey = send->rkey;
		wr->wr.atomic.compare_add = send->compare_add;
		wr->wr.atomic.swap = send->swap;
		break;
	case URXE_WR_SEND_INV:
	case URXE_WR_LOCAL_INV: wr->invalidate_rkey = send->invalidate_key; break;
	case URXE_WR_BIND_MW: add_bind(o, step, wr); break;
	default: break;
	}
}

static bool without_data(uint32_t opcode)
{
	return opcode == URXE_WR_BIND_MW || opcode == URXE_WR_LOCAL_INV;
}

static int post_send(struct objects *o, const struct step *step, uint64_t wr_id)
{
	struct ibv_sge sge = segment(o, &step->place);
	struct ibv_send_wr wr = {.wr_id = wr_id,
				 .sg_list = &sge,
				 .num_sge = !without_data(step->send.opcode),
				 .opcode = (enum ibv_wr_opcode)step->send.opcode,
				 .send_flags = step->send.flags},
			   *bad;

	if (o->fixture->connections[step->connection].type == URXE_QPT_UD) {
		wr.wr.ud.ah = o->ah;
		wr.wr.ud.remote_qpn = step->send.remote_qpn;
		wr.wr.ud.remote_qkey = step->send.remote_qkey;
		wr.imm_data = step->send.imm;
	} else {
		add_operation(o, step, &wr);
	}
	return ibv_post_send(o->qp[step->connection], &wr, &bad);
}

static bool post(struct objects *o, const struct step *step, struct reason *why)
{
	for (uint32_t i = 0; i < step->times; i++) {
		uint64_t wr_id = step->send.wr_id + i;
		int err = step->kind == STEP_RECV ? post_recv(o, step, wr_id)
						  : post_send(o, step, wr_id);

		if (err)
			return wrong(why, "posting failed: %s", strerror(err));
	}
	return true;
}

/* --- Completions. */

static uint64_t seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec;
}

static bool poll_one(struct ibv_cq *cq, struct ibv_wc *wc)
{
	uint64_t end = seconds() + PATIENCE_S;

	while (seconds() < end) {
		const struct timespec moment = {.tv_nsec = 1000000};

		if (ibv_poll_cq(cq, 1, wc) == 1)
			return true;
		nanosleep(&moment, NULL);
	}
	return false;
}

static bool check_received(const struct urxe_wc *want, const struct ibv_wc *got, struct reason *why)
{
	bool imm = want->flags & URXE_WC_WITH_IMM;

	if (got->byte_len != want->byte_len)
		return wrong(why, "%u bytes came, not %u", got->byte_len, want->byte_len);
	if (imm != !!(got->wc_flags & IBV_WC_WITH_IMM) || (imm && got->imm_data != want->imm))
		return wrong(why, "immediate data: flags %#x, %#x", got->wc_flags, got->imm_data);
	/* Not by the flag: Linux' rdma_rxe sets the kernel's flag, which is another bit than
	 * libibverbs'.
	 */
	if (want->flags & URXE_WC_WITH_INV && got->invalidated_rkey != want->invalidated_key)
		return wrong(why, "%#x was invalidated", got->invalidated_rkey);
	return true;
}

static bool check_wc(struct objects *o, const struct step *step, uint64_t wr_id, struct reason *why)
{
	struct ibv_wc wc;

	if (!poll_one(step->send_queue ? o->send_cq : o->recv_cq, &wc))
		return wrong(why, "no completion in %d s", PATIENCE_S);
	if (wc.wr_id != wr_id || (int)wc.status != (int)step->wc.status)
		return wrong(why, "request %llu completed: %s", (unsigned long long)wc.wr_id,
			     ibv_wc_status_str(wc.status));
	return step->send_queue || wc.status || check_received(&step->wc, &wc, why);
}

static bool check_wcs(struct objects *o, const struct step *step, struct reason *why)
{
	for (uint32_t i = 0; i < step->times; i++)
		if (!check_wc(o, step, step->wc.wr_id + i, why))
			return false;
	return true;
}

/* --- Memory and state. */

static bool check_memory(struct objects *o, const struct step *step, struct reason *why)
{
	const uint8_t *got = o->memory[step->place.region] + step->place.offset;
	uint8_t *want = malloc(step->place.length + 1);
	bool same;

	if (!want)
		objects_fail("memory");
	content_write(&step->content, want, step->place.length);
	same = !memcmp(want, got, step->place.length);
	free(want);
	return same || wrong(why, "memory is not what the text says");
}

static bool check_state(struct objects *o, const struct step *step, struct reason *why)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(o->qp[step->connection], &attr, IBV_QP_STATE, &init))
		objects_fail("ibv_query_qp");
	return (uint32_t)attr.qp_state == step->id ||
	       wrong(why, "the QP is in state %d", attr.qp_state);
}

bool work_step(struct objects *o, const struct step *step, char *text, size_t room)
{
	struct reason why = {text, room};

	switch (step->kind) {
	case STEP_RECV:
	case STEP_SEND: return post(o, step, &why);
	case STEP_WC: return check_wcs(o, step, &why);
	case STEP_MEMORY: return check_memory(o, step, &why);
	case STEP_STATE: return check_state(o, step, &why);
	case STEP_SET:
		content_write(&step->content, o->memory[step->place.region] + step->place.offset,
			      step->place.length);
		return true;
	default: return true;
	}
}
