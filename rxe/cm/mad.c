/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <cm/mad.h>

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define CLASS         0x07 /* communication management (IBA 13.4.4) */
#define BASE_VERSION  1
#define CLASS_VERSION 2
#define METHOD_SEND   3
#define HEADER_LEN    24 /* IBA 13.4.2; the message follows the header */

/* A field of a message: its position in the MAD, in bits, and in struct cm_mad. */
struct field {
	uint16_t bit;
	uint16_t bits;
	uint16_t offset; /* in struct cm_mad */
	uint16_t size;   /* bytes in struct cm_mad */
};

struct message {
	const struct field *fields;
	uint8_t n;
	uint8_t private_at; /* offset in the message, bytes */
	uint8_t private_len;
};

#define AT(byte, bit) ((byte)*8 + (bit))
#define FIELD(where, width, member)                            \
	{                                                      \
		where, width, offsetof(struct cm_mad, member), \
			sizeof(((struct cm_mad *)0)->member)   \
	}

/* REQ (IBA 12.6.5) */
static const struct field req_fields[] = {
	FIELD(AT(0, 0), 32, req.local_id),
	FIELD(AT(5, 0), 24, ece.vendor_id),
	FIELD(AT(8, 0), 64, req.service_id),
	FIELD(AT(16, 0), 64, req.ca_guid),
	FIELD(AT(32, 0), 24, req.qpn),
	FIELD(AT(35, 0), 8, req.responder_resources),
	FIELD(AT(39, 0), 8, req.initiator_depth),
	FIELD(AT(43, 0), 5, req.remote_response),
	FIELD(AT(43, 5), 2, req.service),
	FIELD(AT(43, 7), 1, req.flow_control),
	FIELD(AT(44, 0), 24, req.psn),
	FIELD(AT(47, 0), 5, req.local_response),
	FIELD(AT(47, 5), 3, req.retry_count),
	FIELD(AT(48, 0), 16, req.pkey),
	FIELD(AT(50, 0), 4, req.mtu),
	FIELD(AT(50, 5), 3, req.rnr_retry_count),
	FIELD(AT(51, 0), 4, req.max_cm_retries),
	FIELD(AT(51, 4), 1, req.srq),
	FIELD(AT(52, 0), 16, req.local_lid),
	FIELD(AT(54, 0), 16, req.remote_lid),
	FIELD(AT(56, 0), 128, req.local_gid),
	FIELD(AT(72, 0), 128, req.remote_gid),
	FIELD(AT(88, 0), 20, req.flow_label),
	FIELD(AT(92, 0), 8, req.traffic_class),
	FIELD(AT(93, 0), 8, req.hop_limit),
	FIELD(AT(94, 0), 4, req.sl),
	FIELD(AT(95, 0), 5, req.ack_timeout),
};

/* MRA (IBA 12.6.6) */
static const struct field mra_fields[] = {
	FIELD(AT(0, 0), 32, mra.local_id),
	FIELD(AT(4, 0), 32, mra.remote_id),
	FIELD(AT(8, 0), 2, mra.about),
	FIELD(AT(9, 0), 5, mra.timeout),
};

/* REJ (IBA 12.6.7) */
static const struct field rej_fields[] = {
	FIELD(AT(0, 0), 32, rej.local_id), FIELD(AT(4, 0), 32, rej.remote_id),
	FIELD(AT(8, 0), 2, rej.about),     FIELD(AT(9, 0), 7, rej.ari_len),
	FIELD(AT(10, 0), 16, rej.reason),  FIELD(AT(12, 0), CM_ARI_LEN * 8, rej.ari),
};

/* REP (IBA 12.6.8) */
static const struct field rep_fields[] = {
	FIELD(AT(0, 0), 32, rep.local_id),
	FIELD(AT(4, 0), 32, rep.remote_id),
	FIELD(AT(12, 0), 24, rep.qpn),
	FIELD(AT(20, 0), 24, rep.psn),
	FIELD(AT(24, 0), 8, rep.responder_resources),
	FIELD(AT(25, 0), 8, rep.initiator_depth),
	FIELD(AT(26, 0), 5, rep.ack_delay),
	FIELD(AT(26, 7), 1, rep.flow_control),
	FIELD(AT(27, 0), 3, rep.rnr_retry_count),
	FIELD(AT(27, 3), 1, rep.srq),
	FIELD(AT(28, 0), 64, rep.ca_guid),
};

/* RTU and DREP (IBA 12.6.9, 12.6.11) */
static const struct field pair_fields[] = {
	FIELD(AT(0, 0), 32, pair.local_id),
	FIELD(AT(4, 0), 32, pair.remote_id),
};

/* DREQ (IBA 12.6.10) */
static const struct field dreq_fields[] = {
	FIELD(AT(0, 0), 32, pair.local_id),
	FIELD(AT(4, 0), 32, pair.remote_id),
	FIELD(AT(8, 0), 24, pair.remote_qpn),
};

/* SIDR_REQ (IBA 12.11.1) */
static const struct field sidr_req_fields[] = {
	FIELD(AT(0, 0), 32, sidr_req.request_id),
	FIELD(AT(4, 0), 16, sidr_req.pkey),
	FIELD(AT(8, 0), 64, sidr_req.service_id),
};

/* SIDR_REP (IBA 12.11.2) */
static const struct field sidr_rep_fields[] = {
	FIELD(AT(0, 0), 32, sidr_rep.request_id), FIELD(AT(4, 0), 8, sidr_rep.status),
	FIELD(AT(8, 0), 24, sidr_rep.qpn),        FIELD(AT(12, 0), 64, sidr_rep.service_id),
	FIELD(AT(20, 0), 32, sidr_rep.qkey),
};

#define MESSAGE(fields, at, len)                                    \
	{                                                           \
		fields, sizeof(fields) / sizeof(fields[0]), at, len \
	}

static const struct message messages[] = {
	[CM_REQ - CM_REQ] = MESSAGE(req_fields, 140, CM_REQ_PRIVATE),
	[CM_MRA - CM_REQ] = MESSAGE(mra_fields, 10, CM_MRA_PRIVATE),
	[CM_REJ - CM_REQ] = MESSAGE(rej_fields, 84, CM_REJ_PRIVATE),
	[CM_REP - CM_REQ] = MESSAGE(rep_fields, 36, CM_REP_PRIVATE),
	[CM_RTU - CM_REQ] = MESSAGE(pair_fields, 8, CM_RTU_PRIVATE),
	[CM_DREQ - CM_REQ] = MESSAGE(dreq_fields, 12, CM_DREQ_PRIVATE),
	[CM_DREP - CM_REQ] = MESSAGE(pair_fields, 8, CM_DREP_PRIVATE),
	[CM_SIDR_REQ - CM_REQ] = MESSAGE(sidr_req_fields, 16, CM_SIDR_REQ_PRIVATE),
	[CM_SIDR_REP - CM_REQ] = MESSAGE(sidr_rep_fields, 96, CM_SIDR_REP_PRIVATE),
};

static const struct message *find_message(uint16_t attr)
{
	return attr >= CM_REQ && attr <= CM_SIDR_REP ? &messages[attr - CM_REQ] : NULL;
}

uint32_t cm_private_len(uint16_t attr)
{
	const struct message *m = find_message(attr);

	return m ? m->private_len : 0;
}

/* --- Numbers of up to 64 bits, the top bit first */

static uint64_t get_bits(const uint8_t *p, uint32_t bit, uint32_t bits)
{
	uint64_t value = 0;

	for (uint32_t i = bit; i < bit + bits; i++)
		value = value << 1 | (p[i / 8] >> (7 - i % 8) & 1);
	return value;
}

static void put_bits(uint8_t *p, uint32_t bit, uint32_t bits, uint64_t value)
{
	for (uint32_t i = bit + bits; i-- > bit; value >>= 1)
		p[i / 8] |= (uint8_t)((value & 1) << (7 - i % 8));
}

static uint64_t get_number(const uint8_t *at, uint32_t size)
{
	uint64_t v64;
	uint32_t v32;
	uint16_t v16;

	switch (size) {
	case 1: return *at;
	case 2: memcpy(&v16, at, size); return v16;
	case 4: memcpy(&v32, at, size); return v32;
	default: memcpy(&v64, at, sizeof(v64)); return v64;
	}
}

static void put_number(uint8_t *at, uint32_t size, uint64_t value)
{
	uint32_t v32 = (uint32_t)value;
	uint16_t v16 = (uint16_t)value;

	switch (size) {
	case 1: *at = (uint8_t)value; break;
	case 2: memcpy(at, &v16, size); break;
	case 4: memcpy(at, &v32, size); break;
	default: memcpy(at, &value, sizeof(value)); break;
	}
}

static void get_field(const struct field *f, const uint8_t *message, struct cm_mad *mad)
{
	uint8_t *member = (uint8_t *)mad + f->offset;

	if (f->bits > 64)
		memcpy(member, message + f->bit / 8, f->size);
	else
		put_number(member, f->size, get_bits(message, f->bit, f->bits));
}

static void put_field(const struct field *f, uint8_t *message, const struct cm_mad *mad)
{
	const uint8_t *member = (const uint8_t *)mad + f->offset;

	if (f->bits > 64)
		memcpy(message + f->bit / 8, member, f->size);
	else
		put_bits(message, f->bit, f->bits, get_number(member, f->size));
}

/* --- The vendor ID of a REP, whose three bytes are not adjacent, the top one first */

static const uint8_t rep_vendor_at[] = {15, 19, 23};

static uint32_t get_rep_vendor(const uint8_t *message)
{
	uint32_t id = 0;

	for (uint32_t i = 0; i < sizeof(rep_vendor_at); i++)
		id = id << 8 | message[rep_vendor_at[i]];
	return id;
}

static void put_rep_vendor(uint8_t *message, uint32_t id)
{
	for (uint32_t i = sizeof(rep_vendor_at); i-- > 0; id >>= 8)
		message[rep_vendor_at[i]] = (uint8_t)id;
}

/* --- Messages */

int cm_mad_parse(struct cm_mad *mad, const uint8_t bytes[CM_MAD_LEN])
{
	const uint8_t *message = bytes + HEADER_LEN;
	const struct message *m;

	memset(mad, 0, sizeof(*mad));
	if (bytes[0] != BASE_VERSION || bytes[1] != CLASS || bytes[2] != CLASS_VERSION ||
	    bytes[3] != METHOD_SEND)
		return -EINVAL;
	mad->tid = get_bits(bytes, AT(8, 0), 64);
	mad->attr = (uint16_t)get_bits(bytes, AT(16, 0), 16);
	mad->ece.options = (uint32_t)get_bits(bytes, AT(20, 0), 32);
	m = find_message(mad->attr);
	if (!m)
		return -EOPNOTSUPP;
	if (mad->attr == CM_REP)
		mad->ece.vendor_id = get_rep_vendor(message);
	for (uint32_t i = 0; i < m->n; i++)
		get_field(&m->fields[i], message, mad);
	memcpy(mad->private_data, message + m->private_at, m->private_len);
	return 0;
}

void cm_mad_build(const struct cm_mad *mad, uint8_t bytes[CM_MAD_LEN])
{
	const struct message *m = find_message(mad->attr);
	uint8_t *message = bytes + HEADER_LEN;

	memset(bytes, 0, CM_MAD_LEN);
	bytes[0] = BASE_VERSION;
	bytes[1] = CLASS;
	bytes[2] = CLASS_VERSION;
	bytes[3] = METHOD_SEND;
	put_bits(bytes, AT(8, 0), 64, mad->tid);
	put_bits(bytes, AT(16, 0), 16, mad->attr);
	put_bits(bytes, AT(20, 0), 32, mad->ece.options);
	if (mad->attr == CM_REP)
		put_rep_vendor(message, mad->ece.vendor_id);
	for (uint32_t i = 0; i < m->n; i++)
		put_field(&m->fields[i], message, mad);
	memcpy(message + m->private_at, mad->private_data, m->private_len);
}
