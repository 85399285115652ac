/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The file of urxe capture --state, and the recordings in it. An input that begins with the magic
 * number of pcapng is a file, whose recordings are replayed. Any other input is the records behind
 * the state of a device with a connection, a SRQ and a region, so that calls are reached without a
 * valid checksum.
 */
#include <stdlib.h>
#include <string.h>

#include "capture/engine_replay.h"
#include "capture/recording_file.h"
#include "require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_INPUT (1u << 20)

static uint8_t *prefix; /* a recording without calls */
static size_t prefix_len, prefix_room;

static bool write_prefix(void *arg, const uint8_t *bytes, size_t n)
{
	(void)arg;
	if (prefix_len + n > prefix_room)
		return false;
	memcpy(prefix + prefix_len, bytes, n);
	prefix_len += n;
	return true;
}

/* --- A device whose contexts are the same numbers in every run. */

enum context { SEND_CQ = 1, RECV_CQ, SRQ, RC_QP, UD_QP };
#define CONTEXT(number) ((void *)(uintptr_t)(number))
#define MEM_SIZE        8192
#define PD              7
#define QPN(context)    (0x100u + (context))

static bool on_complete(void *cq_ctx, const struct urxe_wc *wc)
{
	(void)cq_ctx, (void)wc;
	return true;
}

static void on_event(void *ctx)
{
	(void)ctx;
}

static void on_async(void *dev_ctx, enum urxe_async event, void *ctx)
{
	(void)dev_ctx, (void)event, (void)ctx;
}

/* The replay has the answers of these: the device only needs to have the operations. */
static bool on_page_list(void *dev_ctx, const struct urxe_fast_reg *request,
			 const struct urxe_extent **extents, uint32_t *n_extents)
{
	(void)dev_ctx, (void)request, (void)extents, (void)n_extents;
	return false;
}

static bool on_persist(void *dev_ctx, const struct urxe_extent *bytes)
{
	(void)dev_ctx, (void)bytes;
	return false;
}

static const struct urxe_copy_ops copy_ops;
static const struct urxe_ops ops = {.complete = on_complete,
				    .comp_event = on_event,
				    .refill = on_event,
				    .async_event = on_async,
				    .persist = on_persist,
				    .page_list = on_page_list};

static void connect_qp(struct urxe_qp *qp, const struct urxe_qp_init *init,
		       const struct urxe_gid *gid)
{
	struct urxe_qp_attr attr = {
		.state = URXE_QPS_INIT, .port = 1, .qkey = 5, .path_mtu = URXE_MTU_1024};
	const bool rc = init->type == URXE_QPT_RC;

	attr.access =
		URXE_ACCESS_REMOTE_WRITE | URXE_ACCESS_REMOTE_READ | URXE_ACCESS_REMOTE_ATOMIC;
	attr.path = (struct urxe_path){.dgid = *gid, .dmac = {2, 0, 0, 0, 0, 2}};
	attr.dest_qpn = init->qpn;
	attr.max_rd_atomic = attr.max_dest_rd_atomic = 4;
	attr.timeout = 8;
	attr.retry_cnt = attr.rnr_retry = 2;
	require(!urxe_qp_modify(qp, 1, &attr,
				URXE_QP_STATE | URXE_QP_PKEY_INDEX | URXE_QP_PORT |
					(rc ? URXE_QP_ACCESS_FLAGS : URXE_QP_QKEY)));
	attr.state = URXE_QPS_RTR;
	require(!urxe_qp_modify(qp, 1, &attr,
				URXE_QP_STATE | (rc ? URXE_QP_AV | URXE_QP_PATH_MTU |
								 URXE_QP_DEST_QPN | URXE_QP_RQ_PSN |
								 URXE_QP_MAX_DEST_RD_ATOMIC |
								 URXE_QP_MIN_RNR_TIMER
						    : 0)));
	attr.state = URXE_QPS_RTS;
	require(!urxe_qp_modify(qp, 1, &attr,
				URXE_QP_STATE | URXE_QP_SQ_PSN |
					(rc ? URXE_QP_TIMEOUT | URXE_QP_RETRY_CNT |
							 URXE_QP_RNR_RETRY |
							 URXE_QP_MAX_QP_RD_ATOMIC
					    : 0)));
}

static struct urxe_dev *make_device(void)
{
	const struct urxe_dev_attr attr = {.ops = &ops,
					   .copy_ops = &copy_ops,
					   .mac = {2, 0, 0, 0, 0, 1},
					   .mtu = 4200,
					   .seed = 3};
	const struct urxe_gid own = {{0xfe, 0x80, 1}}, peer = {{0xfe, 0x80, 2}};
	/* Never accessed: the replay has no memory. */
	const struct urxe_extent extent = {(void *)0x10000, MEM_SIZE};
	const struct urxe_mr_attr mr = {
		.pd = PD,
		.access = URXE_ACCESS_LOCAL_WRITE | URXE_ACCESS_REMOTE_WRITE |
			  URXE_ACCESS_REMOTE_READ | URXE_ACCESS_REMOTE_ATOMIC | URXE_ACCESS_MW_BIND,
		.iova = 0x10000,
		.length = MEM_SIZE,
		.extents = &extent,
		.n_extents = 1,
		.key = 0x1234};
	const struct urxe_rq_attr srq = {.ctx = CONTEXT(SRQ), .pd = PD, .max_wr = 4, .max_sge = 2};
	struct urxe_qp_init init = {.pd = PD,
				    .cap = {.max_send_wr = 8,
					    .max_recv_wr = 8,
					    .max_send_sge = 2,
					    .max_recv_sge = 2,
					    .max_inline = 64}};
	struct urxe_dev *dev;
	struct urxe_mr *region;
	struct urxe_rq *rq;
	struct urxe_qp *qp;

	require(!urxe_dev_create(&attr, &dev));
	require(!urxe_gid_set(dev, 0, &own, false));
	require(!urxe_mr_reg(dev, &mr, &region));
	require(!urxe_cq_create(dev, CONTEXT(SEND_CQ), &init.send_cq));
	require(!urxe_cq_create(dev, CONTEXT(RECV_CQ), &init.recv_cq));
	require(!urxe_srq_create(dev, &srq, &rq));
	for (enum context i = RC_QP; i <= UD_QP; i++) {
		init.ctx = CONTEXT(i);
		init.type = i == RC_QP ? URXE_QPT_RC : URXE_QPT_UD;
		init.qpn = QPN(i);
		require(!urxe_qp_create(dev, &init, &qp));
		connect_qp(qp, &init, &peer);
	}
	return dev;
}

static void make_prefix(void)
{
	const struct urxe_recorder recorder = {.write = write_prefix, .whole_frames = true};
	struct urxe_dev *dev = make_device();

	prefix_room = 1 << 20;
	prefix = malloc(prefix_room);
	require(prefix);
	require(!urxe_record_start(dev, 1000, &recorder));
	prefix_room = prefix_len; /* nothing more, also no end */
	urxe_dev_destroy(dev);
}

/* --- Inputs. */

static void read_line(void *arg, const char *text)
{
	(void)arg;
	for (; *text; text++)
		require(*text >= ' ' && *text <= '~');
}

static void replay(const struct recording *recording, const struct recording_file *capture)
{
	struct engine_replay r = {
		.recording = recording, .capture = capture, .line = read_line, .all = true};

	engine_replay_run(&r);
	require(r.end < ENGINE_REPLAY_COUNT);
}

static void run_file(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size);
	struct recording_file file;

	require(copy);
	memcpy(copy, data, size);
	if (!recording_file_parse(&file, copy, size))
		for (uint32_t i = 0; i < file.n_recordings; i++)
			replay(&file.recordings[i], &file);
	recording_file_close(&file);
}

static void run_records(const uint8_t *data, size_t size)
{
	struct recording recording = {.n = prefix_len + size};
	const struct recording_file none = {0};

	recording.bytes = malloc(recording.n);
	require(recording.bytes);
	memcpy(recording.bytes, prefix, prefix_len);
	memcpy(recording.bytes + prefix_len, data, size);
	replay(&recording, &none);
	free(recording.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t magic[] = {0x0a, 0x0d, 0x0d, 0x0a};

	if (!prefix)
		make_prefix();
	if (!size || size > MAX_INPUT)
		return 0;
	if (size >= sizeof(magic) && !memcmp(data, magic, sizeof(magic)))
		run_file(data, size);
	else
		run_records(data, size);
	return 0;
}
