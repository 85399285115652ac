/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A stream of a saved device. The input is a script, with its length in front, and a stream's
 * records; bit 15 of the length selects version 2 of the format. The target adds a header with a
 * right checksum, unless the script says otherwise. A
 * stream that is refused leaves nothing behind. A device that is restored is saved and restored
 * once more, which must not change it. Then the script drives it: with packets, time, requests,
 * and changes of its QPs. At last it can be saved again.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <rxe/opcode.h>
#include <rxe/state.h>

#include "craft.h"
#include "require.h"
#include "script.h"

#define MAX_INPUT  65536
#define HEADER_LEN 24
#define VERSION_AT 8
#define VERSION_2  0x8000 /* of the script's length */
#define MEM_SIZE   65536
#define MAX_QPS    64
#define MAX_STEPS  64
#define MAX_BYTES  (16u << 20)
#define FRAMES     4
#define FRAME_ROOM 8192
#define US         1000ull
#define NOW        (1000000000000 * US)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct host {
	struct urxe_dev *dev;
	struct urxe_qp *qp[MAX_QPS];
	uint32_t n_qps;
	struct urxe_cq *cq[MAX_QPS];
	uint32_t n_cqs;
	uint64_t now;
	struct urxe_extent extent;
	uint32_t completed;
};

static uint8_t memory[MEM_SIZE];

/* --- Operations of the device. */

static bool on_complete(void *cq_ctx, const struct urxe_wc *wc)
{
	struct host *host = cq_ctx;

	require(wc->status <= URXE_WC_RNR_RETRY_EXC_ERR);
	return ++host->completed % 64;
}

static void on_comp_event(void *cq_ctx)
{
	(void)cq_ctx;
}

static void on_refill(void *rq_ctx)
{
	(void)rq_ctx;
}

static void on_async_event(void *dev_ctx, enum urxe_async event, void *obj_ctx)
{
	(void)dev_ctx, (void)event, (void)obj_ctx;
}

static bool on_persist(void *dev_ctx, const struct urxe_extent *bytes)
{
	(void)dev_ctx, (void)bytes;
	return true;
}

static bool on_page_list(void *dev_ctx, const struct urxe_fast_reg *request,
			 const struct urxe_extent **extents, uint32_t *n_extents)
{
	struct host *host = dev_ctx;

	host->extent = (struct urxe_extent){memory, request->length};
	*extents = &host->extent;
	*n_extents = 1;
	return request->length <= MEM_SIZE;
}

static const struct urxe_ops ops = {
	.complete = on_complete,
	.comp_event = on_comp_event,
	.refill = on_refill,
	.async_event = on_async_event,
	.persist = on_persist,
	.page_list = on_page_list,
};

/* --- Restoration. */

static void *on_context(void *arg, const struct urxe_state_object *object)
{
	(void)object;
	return arg;
}

/* Long regions have no memory. */
static int on_memory(void *arg, struct urxe_state_region *region)
{
	struct host *host = arg;

	host->extent.addr = region->length <= MEM_SIZE ? memory : NULL;
	host->extent.length = region->length;
	region->extents = &host->extent;
	region->n_extents = 1;
	return 0;
}

static int on_completion(void *arg, void *cq_ctx, const struct urxe_wc *wc)
{
	(void)arg, (void)cq_ctx, (void)wc;
	return 0;
}

static void on_restored(void *arg, const struct urxe_state_object *object)
{
	struct host *host = arg;

	if (object->kind == URXE_STATE_QP && host->n_qps < MAX_QPS)
		host->qp[host->n_qps++] = object->qp;
	if (object->kind == URXE_STATE_CQ && host->n_cqs < MAX_QPS)
		host->cq[host->n_cqs++] = object->cq;
}

static bool restore(struct host *host, const uint8_t *stream, size_t length)
{
	const struct urxe_state_restore how = {
		.arg = host,
		.context = on_context,
		.memory = on_memory,
		.completion = on_completion,
		.restored = on_restored,
		.max_bytes = MAX_BYTES,
	};
	struct urxe_state_attr saved;
	int rc = urxe_state_read_attr(stream, length, &saved);

	if (rc) {
		require(rc == -EBADMSG || rc == -EPROTONOSUPPORT);
		return false;
	}
	*host = (struct host){.now = NOW};
	saved.attr.ctx = host;
	saved.attr.ops = &ops;
	rc = urxe_state_restore(&saved.attr, host->now, &how, stream, length, &host->dev);
	require(rc <= 0 && (!rc || !host->n_qps));
	return !rc;
}

static void save(struct host *host, uint8_t **stream, size_t *length)
{
	const struct urxe_state_save how = {0};

	require(urxe_state_save(host->dev, host->now, &how, stream, length) == 0);
}

/* Values that are limited to the restoring device may differ once, but not again. */
static void restore_again(struct host *host)
{
	uint8_t *first, *second;
	size_t length, again;

	save(host, &first, &length);
	urxe_dev_destroy(host->dev);
	require(restore(host, first, length));
	save(host, &second, &again);
	require(length == again && !memcmp(first, second, length));
	urxe_state_free(first);
	urxe_state_free(second);
}

/* --- Driving. */

static void send_all(struct host *host)
{
	static uint8_t room[FRAMES][FRAME_ROOM];
	struct urxe_frame frames[FRAMES];
	uint32_t n = FRAMES;

	for (unsigned turns = 0; n == FRAMES && turns < 256; turns++) {
		for (unsigned i = 0; i < FRAMES; i++)
			frames[i] = (struct urxe_frame){.data = room[i], .room = FRAME_ROOM};
		n = urxe_output(host->dev, host->now, frames, FRAMES);
		for (unsigned i = 0; i < n; i++)
			require(frames[i].len <= FRAME_ROOM);
	}
}

static struct urxe_qp *next_qp(struct host *host, struct script *in)
{
	return host->n_qps ? host->qp[script_get8(in) % host->n_qps] : NULL;
}

/* A packet of the QP's peer, near the expected PSN of requests or responses. */
static struct urxe_packet packet_to(const struct urxe_qp *qp, struct script *in)
{
	const uint8_t flags = script_get8(in);
	struct urxe_qp_attr attr;
	struct urxe_qp_init init;
	struct urxe_packet p = {
		.hop_limit = 64,
		.pkey = 0xffff,
		.udp_sport = 0xc000,
		.mig_req = true,
		.ack_req = flags & 1,
		.solicited = flags & 2,
		.becn = flags & 4,
	};

	urxe_qp_query(qp, &attr, &init);
	p.net = attr.path.sgid_index % 3;
	p.sgid = attr.path.dgid;
	p.dgid = craft_gid(p.net, 1);
	p.dest_qpn = init.qpn;
	p.opcode = script_get8(in);
	p.psn = (flags & 8 ? attr.sq_psn : attr.rq_psn) + (uint32_t)(int8_t)script_get8(in);
	p.psn &= 0xffffff;
	p.deth.qkey = attr.qkey;
	p.deth.src_qpn = attr.dest_qpn;
	return p;
}

static void inject(struct host *host, struct script *in)
{
	static uint8_t payload[4096], data[CRAFT_MAX];
	const struct urxe_qp *qp = next_qp(host, in);
	struct urxe_frame frame = {.data = data, .room = sizeof(data)};
	struct urxe_packet p;

	if (!qp)
		return;
	p = packet_to(qp, in);
	p.reth.va = p.atomic.va = script_get32(in);
	p.reth.rkey = p.atomic.rkey = p.ieth_rkey = script_get16(in);
	p.reth.length = script_get16(in);
	p.aeth.syndrome = script_get8(in);
	p.feth.placement = 1;
	p.payload = payload;
	p.payload_len = script_get8(in) * 16u;
	if (!(urxe_opcodes[p.opcode].flags & URXE_OPF_PAYLOAD))
		p.payload_len = 0;
	if (URXE_OPCODE_SERVICE(p.opcode) == URXE_SERVICE_CNP)
		p.payload_len = 16;
	p.pad = -p.payload_len & 3;
	frame.len = craft_frame(data, &p);
	urxe_input(host->dev, host->now, &frame, 1);
}

static void post(struct host *host, struct script *in)
{
	static const struct urxe_path path;
	struct urxe_qp *qp = next_qp(host, in);
	struct urxe_seg seg = {script_get32(in), script_get16(in), script_get32(in)};
	const struct urxe_recv_wr recv = {.segs = &seg, .n_segs = 1};
	const struct urxe_send_wr send = {
		.opcode = script_get8(in) % 16,
		.flags = URXE_SEND_SIGNALED,
		.segs = &seg,
		.n_segs = 1,
		.path = &path,
		.flush.placement = 1,
	};

	if (!qp)
		return;
	if (urxe_qp_rq(qp))
		urxe_post_recv(urxe_qp_rq(qp), &recv);
	urxe_post_send(qp, &send);
}

static void modify(struct host *host, struct script *in)
{
	struct urxe_qp *qp = next_qp(host, in);
	struct urxe_qp_attr attr;
	struct urxe_qp_init init;
	uint32_t mask;

	if (!qp)
		return;
	urxe_qp_query(qp, &attr, &init);
	attr.state = script_get8(in) % URXE_QPS_COUNT;
	mask = script_get8(in) & 1 ? URXE_QP_STATE : script_get32(in);
	urxe_qp_modify(qp, host->now, &attr, mask);
}

static void destroy(struct host *host, struct script *in)
{
	uint32_t i;

	if (!host->n_qps)
		return;
	i = script_get8(in) % host->n_qps;
	urxe_qp_destroy(host->qp[i]);
	host->qp[i] = host->qp[--host->n_qps];
}

static void step(struct host *host, struct script *in)
{
	switch (script_get8(in) % 8) {
	case 0:
	case 1:
	case 2: inject(host, in); break;
	case 3: post(host, in); break;
	case 4: host->now += script_get16(in) * US; break;
	case 5: host->now += script_get16(in) * 1000 * US; break;
	case 6: modify(host, in); break;
	default: script_get8(in) & 3 ? send_all(host) : destroy(host, in); break;
	}
	send_all(host);
}

static void drive(struct host *host, struct script *in)
{
	for (uint32_t i = 0; i < host->n_cqs; i++)
		urxe_cq_arm(host->cq[i], false);
	for (unsigned i = 0; in->left && i < MAX_STEPS; i++)
		step(host, in);
	/* Timers fall due one after the other. */
	for (unsigned i = 0; i < 32; i++) {
		uint64_t next = urxe_next_deadline(host->dev);

		if (next == URXE_NEVER)
			break;
		host->now = next > host->now ? next : host->now + 1;
		send_all(host);
	}
}

/* --- */

/* A stream with these records, and a header. */
static size_t seal(uint8_t *stream, uint8_t version, const uint8_t *records, size_t n)
{
	uint8_t *tail;
	size_t length = HEADER_LEN + n;

	memcpy(stream, "urxestat\0\0\0\0\0\0\0\0", 16);
	stream[VERSION_AT] = version;
	for (unsigned i = 0; i < 8; i++)
		stream[16 + i] = (uint8_t)((uint64_t)length >> 8 * i);
	memcpy(stream + HEADER_LEN, records, n);
	/* The checksum leaves itself out. */
	tail = malloc(length - 4);
	require(tail);
	memcpy(tail, stream, 12);
	memcpy(tail + 12, stream + 16, length - 16);
	for (unsigned i = 0, crc = craft_crc32(tail, length - 4); i < 4; i++)
		stream[12 + i] = (uint8_t)(crc >> 8 * i);
	free(tail);
	return length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct host host;
	struct script in = {data, size};
	uint8_t *stream, *again;
	uint16_t n = script_get16(&in);
	const uint8_t version = n & VERSION_2 ? 2 : 1;
	size_t length;

	n &= (uint16_t)~VERSION_2;
	if (size > MAX_INPUT || n > in.left)
		return 0;
	length = in.left - n;
	stream = malloc(length + HEADER_LEN);
	require(stream);
	if (n % 64 == 63)
		memcpy(stream, in.at + n, length);
	else
		length = seal(stream, version, in.at + n, length);
	in.left = n;
	if (restore(&host, stream, length)) {
		restore_again(&host);
		drive(&host, &in);
		save(&host, &again, &length);
		urxe_state_free(again);
		urxe_dev_destroy(host.dev);
	}
	free(stream);
	return 0;
}
