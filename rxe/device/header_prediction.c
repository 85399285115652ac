/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "device/header_prediction.h"

#include "objects/device.h"
#include "objects/qp.h"
#include "wire/header_fields.h"
#include "wire/packet_parse.h"

#define UDP_AT (ETH_LEN + IPV4_LEN)
#define BTH_AT (UDP_AT + UDP_LEN)
#define QPN_AT (BTH_AT + 5)

/* Word i of the headers, with the bits of the mask cleared. */
static uint64_t header_word(const uint8_t *headers, int i, uint64_t mask)
{
	return get64(headers + 8 * i) & ~mask;
}

/* Reads the first 40 bytes of the headers, and clears the fields that vary: length, identification
 * and checksum of IPv4, length of UDP. The UDP checksum is behind the five words. */
static void read_words(uint64_t words[5], const uint8_t *headers)
{
	words[0] = header_word(headers, 0, 0);
	words[1] = header_word(headers, 1, 0);
	words[2] = header_word(headers, 2, UINT64_C(0xffffffff00000000));
	words[3] = header_word(headers, 3, UINT64_C(0xffff000000000000));
	words[4] = header_word(headers, 4, UINT64_C(0x000000000000ffff));
}

static bool is_predicted(const struct urxe_qp *qp, const uint8_t *headers)
{
	const struct predict *known = &qp->predict;
	uint64_t words[5], differs = known->era ^ qp->dev->address_era;

	read_words(words, headers);
	for (int i = 0; i < 5; i++)
		differs |= words[i] ^ known->words[i];
	return !differs;
}

static bool is_long_enough(const struct urxe_frame *frame)
{
	return frame->len >= BTH_AT + BTH_LEN;
}

static uint32_t dest_qpn(const struct urxe_frame *frame)
{
	return get24((const uint8_t *)frame->data + QPN_AT);
}

struct urxe_qp *predict_parse(const struct urxe_dev *dev, const struct urxe_frame *frame,
			      struct urxe_packet *p)
{
	const uint8_t *headers = frame->data;
	uint32_t ip_len, udp_len;
	struct urxe_qp *qp;

	if (!is_long_enough(frame))
		return NULL;
	qp = idmap_find(&dev->qps, dest_qpn(frame));
	if (!qp || !is_predicted(qp, headers))
		return NULL;
	ip_len = get16(headers + ETH_LEN + 2);
	udp_len = get16(headers + UDP_AT + 4);
	if (ip_len > frame->len - ETH_LEN || ip_len != IPV4_LEN + udp_len || udp_len < UDP_LEN)
		return NULL;
	*p = (struct urxe_packet){
		.l3 = headers + ETH_LEN,
		.net = URXE_NET_IPV4,
		.traffic_class = headers[ETH_LEN + 1],
		.hop_limit = headers[ETH_LEN + 8],
	};
	return parse_transport(p, headers + BTH_AT, headers + ETH_LEN + ip_len) ? NULL : qp;
}

void predict_learn(struct urxe_qp *qp, const struct urxe_frame *frame, const struct urxe_packet *p)
{
	if (p->net != URXE_NET_IPV4 || p->has_vlan)
		return;
	qp->predict.era = qp->dev->address_era;
	read_words(qp->predict.words, frame->data);
}
