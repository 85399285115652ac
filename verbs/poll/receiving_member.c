/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "poll/receiving_member.h"

#include <stddef.h>

#include "adapter/adapter.h"
#include "queues/verbs_qp.h"

#define NO_QPN UINT32_MAX

/* Returns the destination QPN of a frame that the direct uplink has received; NO_QPN: the frame is
 * shorter than its headers. The frame is RoCE, because the socket's filter accepts nothing else. */
static uint32_t read_dest_qpn(const struct urxe_frame *frame)
{
	const uint32_t tag = frame->len > 18 && frame->data[12] == 0x81 ? 4 : 0;
	const uint8_t *type = frame->data + 12 + tag;
	uint32_t bth = 14 + tag;

	if (frame->len < bth)
		return NO_QPN;
	bth += type[0] == 0x08 ? 28 : type[0] == 0x86 ? 48 : 40; /* IPv4, IPv6, GRH */
	if (frame->len < bth + 8)
		return NO_QPN;
	return (uint32_t)frame->data[bth + 5] << 16 | (uint32_t)frame->data[bth + 6] << 8 |
	       frame->data[bth + 7];
}

/* Looks up the QP only once for consecutive frames to the same QPN, which are frequent. */
void receiving_member_note(const struct urxe_frame *frames, uint32_t n, uint32_t member)
{
	uint32_t last = NO_QPN;

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t qpn = read_dest_qpn(&frames[i]);
		struct qp *qp =
			qpn == last || qpn == NO_QPN ? NULL : leases_find(&adapter.leases, qpn);

		last = qpn;
		if (qp)
			qp->receives_by = (uint8_t)(1 + member);
	}
}

void receiving_member_forget(void)
{
	uint32_t at = 0;
	struct qp *qp;

	while ((qp = leases_next(&adapter.leases, &at)))
		qp->receives_by = 0;
}
