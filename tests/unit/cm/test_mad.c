/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages of the connection manager: each field lies where the specification says. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <cm/ip.h>
#include <cm/mad.h>
#include <rxe/packet.h>

#define MESSAGE 24 /* offset of the CM message in a MAD */
#define FRAMES  16

/* --- Messages that Linux has sent. CM_FIXTURES is the folder of captures. */

struct capture {
	struct cm_mad mads[FRAMES];
	uint32_t n;
};

static void take(struct capture *c, const uint8_t *frame, uint32_t len)
{
	uint8_t original[CM_MAD_LEN], built[CM_MAD_LEN];
	struct cm_mad *mad = &c->mads[c->n];
	struct urxe_packet p;

	if (urxe_packet_parse(&p, frame, len) != URXE_DROP_NONE || p.dest_qpn != URXE_QPN_GSI)
		return;
	assert_int_equal(p.payload_len, CM_MAD_LEN);
	assert_int_equal(p.deth.qkey, CM_QKEY);
	assert_in_range(c->n, 0, FRAMES - 1);
	memcpy(original, p.payload, CM_MAD_LEN);
	assert_int_equal(cm_mad_parse(mad, original), 0);
	cm_mad_build(mad, built);
	assert_memory_equal(built, original, CM_MAD_LEN);
	c->n++;
}

/* Reads a pcap file of this machine's byte order, as tcpdump writes it. */
static void load(struct capture *c, const char *name)
{
	uint8_t header[24], frame[2048];
	uint32_t record[4];
	char path[512];
	FILE *file;

	c->n = 0;
	snprintf(path, sizeof(path), CM_FIXTURES "/%s/capture.pcap", name);
	file = fopen(path, "re");
	assert_non_null(file);
	assert_int_equal(fread(header, sizeof(header), 1, file), 1);
	while (fread(record, sizeof(record), 1, file) == 1) {
		assert_in_range(record[2], 1, sizeof(frame));
		assert_int_equal(fread(frame, record[2], 1, file), 1);
		take(c, frame, record[2]);
	}
	fclose(file);
}

static void test_captured_req_to_drep_of_linux_are_parsed(void **state)
{
	static const uint16_t attrs[] = {CM_REQ, CM_REP, CM_RTU, CM_DREQ, CM_DREP};
	const struct cm_req *req;
	struct cm_ip_hdr ip;
	struct capture c;

	(void)state;
	load(&c, "rping-v4");
	assert_int_equal(c.n, 5);
	for (uint32_t i = 0; i < c.n; i++)
		assert_int_equal(c.mads[i].attr, attrs[i]);
	req = &c.mads[0].req;
	assert_int_equal(req->service_id, cm_service_id(CM_PS_TCP, 7174));
	assert_int_equal(req->local_id, 0x8d84f2e2);
	assert_int_equal(req->ca_guid, 0x505400fffe77000a);
	assert_int_equal(req->qpn, 0x21);
	assert_int_equal(req->psn, 0xf3f00a);
	assert_int_equal(req->responder_resources, 1);
	assert_int_equal(req->initiator_depth, 1);
	assert_int_equal(req->remote_response, 20);
	assert_int_equal(req->local_response, 20);
	assert_int_equal(req->service, CM_SERVICE_RC);
	assert_int_equal(req->retry_count, 7);
	assert_int_equal(req->rnr_retry_count, 7);
	assert_int_equal(req->max_cm_retries, 15);
	assert_int_equal(req->mtu, 3);
	assert_int_equal(req->pkey, 0xffff);
	assert_int_equal(req->flow_label, (0xbf12 * 31 + 7174) & 0xfffff);
	assert_int_equal(req->hop_limit, 64);
	assert_int_equal(req->ack_timeout, 19);
	assert_int_equal(c.mads[1].rep.remote_id, req->local_id);
	assert_int_equal(c.mads[1].tid, c.mads[0].tid);
	assert_int_equal(c.mads[2].pair.remote_id, c.mads[1].rep.local_id);
	assert_int_equal(c.mads[3].pair.remote_qpn, c.mads[1].rep.qpn);
	assert_int_equal(c.mads[4].tid, c.mads[3].tid);
	assert_int_equal(cm_ip_parse(&ip, c.mads[0].private_data), 0);
	assert_false(ip.v6);
	assert_int_equal(ip.src_port, 0xbf12);
	assert_memory_equal(ip.src, req->local_gid, 16);
	assert_memory_equal(ip.dst, req->remote_gid, 16);
}

static void test_captured_req_over_ipv6_is_parsed(void **state)
{
	struct cm_ip_hdr ip;
	struct capture c;

	(void)state;
	load(&c, "rping-v6");
	assert_int_equal(c.mads[0].attr, CM_REQ);
	assert_int_equal(cm_ip_parse(&ip, c.mads[0].private_data), 0);
	assert_true(ip.v6);
	assert_memory_equal(ip.src, c.mads[0].req.local_gid, 16);
}

static void test_captured_rej_of_linux_is_parsed(void **state)
{
	struct capture c;

	(void)state;
	load(&c, "reject");
	assert_int_equal(c.n, 2);
	assert_int_equal(c.mads[1].attr, CM_REJ);
	assert_int_equal(c.mads[1].rej.about, CM_ABOUT_REQ);
	assert_int_equal(c.mads[1].rej.reason, CM_REJ_INVALID_SERVICE_ID);
	assert_int_equal(c.mads[1].rej.remote_id, c.mads[0].req.local_id);
}

static void test_captured_sidr_req_and_rep_are_parsed(void **state)
{
	struct cm_ip_hdr ip;
	struct capture c;

	(void)state;
	load(&c, "udaddy");
	assert_int_equal(c.n, 2);
	assert_int_equal(c.mads[0].attr, CM_SIDR_REQ);
	assert_int_equal(c.mads[0].sidr_req.service_id, cm_service_id(CM_PS_UDP, 7174));
	assert_int_equal(cm_ip_parse(&ip, c.mads[0].private_data), 0);
	assert_int_equal(c.mads[1].attr, CM_SIDR_REP);
	assert_int_equal(c.mads[1].sidr_rep.request_id, c.mads[0].sidr_req.request_id);
	assert_int_equal(c.mads[1].sidr_rep.status, CM_SIDR_OK);
	assert_int_equal(c.mads[1].sidr_rep.qkey, 0x01234567);
	assert_int_not_equal(c.mads[1].sidr_rep.qpn, 0);
}

/* --- Messages that no capture contains, byte for byte */

static void test_mra_has_the_specified_bytes(void **state)
{
	static const uint8_t head[] = {1, 7, 2, 3, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0x11};
	static const uint8_t body[] = {0xa1, 0xa2, 0xa3, 0xa4, 0xb1, 0xb2,
				       0xb3, 0xb4, 0x40, 0xc0, 0x77};
	const struct cm_mad mad = {.attr = CM_MRA,
				   .tid = 0x0102030405060708,
				   .mra = {0xa1a2a3a4, 0xb1b2b3b4, CM_ABOUT_REP, 24},
				   .private_data = {0x77}};
	uint8_t bytes[CM_MAD_LEN];

	(void)state;
	cm_mad_build(&mad, bytes);
	assert_memory_equal(bytes, head, sizeof(head));
	assert_memory_equal(bytes + MESSAGE, body, sizeof(body));
}

static void test_rej_has_the_specified_bytes(void **state)
{
	static const uint8_t body[] = {1, 2, 3, 4, 5, 6, 7, 8, 0x80, 16, 0, 10, 0xee};
	const struct cm_mad mad = {
		.attr = CM_REJ,
		.rej = {0x01020304, 0x05060708, CM_ABOUT_OTHER, 8, CM_REJ_STALE, {0xee}},
		.private_data = {[CM_REJ_PRIVATE - 1] = 0x99}};
	uint8_t bytes[CM_MAD_LEN];

	(void)state;
	cm_mad_build(&mad, bytes);
	assert_memory_equal(bytes + MESSAGE, body, sizeof(body));
	assert_int_equal(bytes[CM_MAD_LEN - 1], 0x99);
}

/* The vendor ID lies in reserved bytes, in those of a REP one by one. */
static void test_ece_has_the_specified_bytes(void **state)
{
	struct cm_mad mad = {.attr = CM_REQ, .ece = {0x123456, 0x0a0b0c0d}};
	uint8_t bytes[CM_MAD_LEN];

	(void)state;
	cm_mad_build(&mad, bytes);
	assert_memory_equal(bytes + 20, ((const uint8_t[]){0x0a, 0x0b, 0x0c, 0x0d}), 4);
	assert_memory_equal(bytes + MESSAGE + 5, ((const uint8_t[]){0x12, 0x34, 0x56}), 3);
	mad.attr = CM_REP;
	cm_mad_build(&mad, bytes);
	assert_int_equal(bytes[MESSAGE + 15], 0x12);
	assert_int_equal(bytes[MESSAGE + 19], 0x34);
	assert_int_equal(bytes[MESSAGE + 23], 0x56);
	assert_int_equal(cm_mad_parse(&mad, bytes), 0);
	assert_int_equal(mad.ece.vendor_id, 0x123456);
	assert_int_equal(mad.ece.options, 0x0a0b0c0d);
}

/* The largest value of each field does not change its neighbours. */
static void test_largest_values_do_not_change_neighbours(void **state)
{
	struct cm_mad mad, again;
	uint8_t bytes[CM_MAD_LEN];

	(void)state;
	for (uint16_t attr = CM_REQ; attr <= CM_SIDR_REP; attr++) {
		memset(&mad, 0, sizeof(mad));
		memset(bytes, 0xff, sizeof(bytes));
		memcpy(bytes, (const uint8_t[]){1, 7, 2, 3}, 4);
		bytes[16] = 0;
		bytes[17] = (uint8_t)attr;
		assert_int_equal(cm_mad_parse(&mad, bytes), 0);
		cm_mad_build(&mad, bytes);
		assert_int_equal(cm_mad_parse(&again, bytes), 0);
		assert_memory_equal(&again, &mad, sizeof(mad));
		assert_int_equal(bytes[CM_MAD_LEN - 1], 0xff);
	}
}

static void test_mads_other_than_cm_messages_are_refused(void **state)
{
	static const struct {
		uint8_t byte, value;
		int rc;
	} wrong[] = {
		{0, 2, -EINVAL}, /* base version */
		{1, 3, -EINVAL}, /* class: subnet administration */
		{2, 1, -EINVAL}, /* class version */
		{3, 1, -EINVAL}, /* method: Get */
		{3, 0x83, -EINVAL},      {17, CM_LAP, -EOPNOTSUPP}, {17, CM_APR, -EOPNOTSUPP},
		{17, 0x0f, -EOPNOTSUPP}, {16, 1, -EOPNOTSUPP},
	};
	const struct cm_mad good = {.attr = CM_REQ};
	uint8_t bytes[CM_MAD_LEN];
	struct cm_mad mad;

	(void)state;
	for (uint32_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		cm_mad_build(&good, bytes);
		assert_int_equal(cm_mad_parse(&mad, bytes), 0);
		bytes[wrong[i].byte] = wrong[i].value;
		assert_int_equal(cm_mad_parse(&mad, bytes), wrong[i].rc);
	}
}

static void test_ip_header_round_trips_and_wrong_versions_are_refused(void **state)
{
	static const uint8_t bytes[CM_IP_HDR_LEN] = {0, 0x40, 0x1c,      0x06, [16] = 10, 0,
						     0, 1,    [32] = 10, 0,    0,         2};
	const struct cm_ip_hdr v4 = {.src = {[10] = 0xff, 0xff, 10, 0, 0, 1},
				     .dst = {[10] = 0xff, 0xff, 10, 0, 0, 2},
				     .src_port = 0x1c06};
	uint8_t built[CM_IP_HDR_LEN];
	struct cm_ip_hdr hdr = {0};

	(void)state;
	cm_ip_build(&v4, built);
	assert_memory_equal(built, bytes, sizeof(bytes));
	assert_int_equal(cm_ip_parse(&hdr, built), 0);
	assert_memory_equal(hdr.src, v4.src, 16);
	assert_memory_equal(hdr.dst, v4.dst, 16);
	assert_int_equal(hdr.src_port, 0x1c06);
	built[1] = 0x50;
	assert_int_equal(cm_ip_parse(&hdr, built), -EINVAL);
	built[1] = 0x60;
	built[0] = 1;
	assert_int_equal(cm_ip_parse(&hdr, built), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_captured_req_to_drep_of_linux_are_parsed),
		cmocka_unit_test(test_captured_req_over_ipv6_is_parsed),
		cmocka_unit_test(test_captured_rej_of_linux_is_parsed),
		cmocka_unit_test(test_captured_sidr_req_and_rep_are_parsed),
		cmocka_unit_test(test_mra_has_the_specified_bytes),
		cmocka_unit_test(test_rej_has_the_specified_bytes),
		cmocka_unit_test(test_ece_has_the_specified_bytes),
		cmocka_unit_test(test_largest_values_do_not_change_neighbours),
		cmocka_unit_test(test_mads_other_than_cm_messages_are_refused),
		cmocka_unit_test(test_ip_header_round_trips_and_wrong_versions_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
