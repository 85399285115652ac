/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Any messages and calls of the owner at any time, for a connection manager with connections in all
 * states. It must send valid messages only, and all connections must end.
 *
 * The script is a list of steps, a byte each with its arguments: see step().
 */
#include <string.h>

#include <cm/cm.h>

#include "require.h"
#include "script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ENDS 8
#define NS   UINT64_C(1000000000)

static struct cm_conn *ends[ENDS];
static uint8_t last[CM_MAD_LEN]; /* the last sent message, which a peer answers */
static bool take;

static void on_send(void *ctx, const struct cm_path *path, const uint8_t mad[CM_MAD_LEN])
{
	struct cm_mad parsed;

	(void)ctx;
	(void)path;
	require(!cm_mad_parse(&parsed, mad));
	memcpy(last, mad, CM_MAD_LEN);
}

static enum cm_verdict on_request(void *ctx, struct cm_conn *conn, const struct cm_mad *mad,
				  void **conn_ctx)
{
	(void)ctx;
	require(mad->attr == CM_REQ || mad->attr == CM_SIDR_REQ);
	for (int i = 0; take && i < ENDS; i++) {
		if (ends[i])
			continue;
		ends[i] = conn;
		*conn_ctx = &ends[i];
		return CM_TAKE;
	}
	return take ? CM_FORGET : CM_REJECT_NO_LISTENER;
}

static void on_event(void *ctx, enum cm_event event, const struct cm_mad *mad)
{
	struct cm_conn **end = ctx;

	require(*end && event <= CM_EVENT_SIDR_ERROR);
	require(!mad || cm_private_len(mad->attr));
}

/*
 * Receives a message of a peer: its kind, the transaction ID and the swapped IDs of the last sent
 * message, and script bytes.
 */
static void receive(struct cm *cm, uint64_t now, struct script *in)
{
	uint8_t from = script_get8(in);
	const struct cm_path path = {
		.dgid = {[15] = from & 0x7f}, .known = from >> 7, .has_mac = true, .mac = {2}};
	uint8_t bytes[CM_MAD_LEN] = {1, 7, 2, 3, [17] = script_get8(in)};
	uint8_t n = script_get8(in);

	bytes[24 + 50] = CM_MTU_MAX << 4; /* of a REQ, else its path MTU would be invalid */
	memcpy(bytes + 8, last + 8, 8);
	memcpy(bytes + 24, last + 28, 4);
	memcpy(bytes + 28, last + 24, 4);
	for (uint8_t i = 0; i < n && in->left; i++) {
		uint8_t at = script_get8(in);

		bytes[at] = script_get8(in);
	}
	cm_input(cm, now, &path, bytes);
}

static void request(struct cm *cm, uint64_t now, struct script *in)
{
	uint8_t i = script_get8(in) % ENDS, kind = script_get8(in);
	const struct cm_request connect = {.service = kind & 1, .param = {.qpn = script_get8(in)}};
	const struct cm_sidr_request sidr = {.timeout_ns = 1 + script_get8(in)};

	if (ends[i])
		return;
	if (kind & 2)
		require(!cm_sidr_resolve(cm, now, &sidr, &ends[i], &ends[i]));
	else
		require(!cm_connect(cm, now, &connect, &ends[i], &ends[i]));
}

static void call(uint64_t now, struct script *in)
{
	static const uint8_t data[CM_PRIVATE_MAX];
	uint8_t i = script_get8(in) % ENDS, what = script_get8(in) % 8;
	const struct cm_param param = {.qpn = script_get8(in),
				       .private_data = data,
				       .private_len = script_get8(in) % CM_PRIVATE_MAX};
	const struct cm_sidr_reply reply = {.status = script_get8(in) & 1};

	if (!ends[i])
		return;
	switch (what) {
	case 0: cm_accept(ends[i], now, &param); return;
	case 1: cm_ready(ends[i]); return;
	case 2: cm_reject(ends[i], now, 28, data, param.private_len); return;
	case 3: cm_established(ends[i]); return;
	case 4: cm_disconnect(ends[i], now); return;
	case 5: cm_sidr_answer(ends[i], &reply); return;
	default:
		cm_release(ends[i], now);
		ends[i] = NULL;
		return;
	}
}

static void step(struct cm *cm, uint64_t *now, struct script *in)
{
	switch (script_get8(in) % 6) {
	case 0:
	case 1: receive(cm, *now, in); return;
	case 2: request(cm, *now, in); return;
	case 3: call(*now, in); return;
	case 4: take = script_get8(in) & 1; return;
	default:
		*now += script_get8(in) * NS / 4;
		cm_tick(cm, *now);
		return;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct cm_ops ops = {on_send, on_request, on_event};
	static const uint8_t seed[CM_SEED_LEN] = {1};
	struct script in = {data, size};
	uint64_t now = 1, rounds = 0;
	struct cm *cm;

	memset(ends, 0, sizeof(ends));
	memset(last, 0, sizeof(last));
	take = true;
	require(!cm_create(&ops, NULL, 0xa0, seed, &cm));
	while (in.left)
		step(cm, &now, &in);
	for (int i = 0; i < ENDS; i++)
		if (ends[i])
			cm_release(ends[i], now);
	/* Without answers of a peer all connections must end. */
	while (cm_next_deadline(cm) != CM_NEVER) {
		require(++rounds < 1000000);
		cm_tick(cm, cm_next_deadline(cm));
	}
	require(!cm_conns(cm));
	cm_destroy(cm);
	return 0;
}
