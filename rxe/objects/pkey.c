/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "objects/pkey.h"

#include <errno.h>

#include <rxe/opcode.h>

#include "objects/copy_table.h"
#include "objects/device.h"
#include "objects/qp.h"

int pkey_find(const struct urxe_dev *dev, uint16_t pkey)
{
	for (int i = 0; i < URXE_MAX_PKEYS; i++) {
		if (pkey_matches(dev->pkeys[i], pkey))
			return i;
	}
	return -1;
}

/*
 * IBA 9.6.1.1 and 10.9: a QP receives packets of its own partition, QP 1 of all partitions in the
 * table. NICs send CNPs with the default P_Key, whatever the P_Key of the QP; a CNP has no data.
 */
bool pkey_admits(const struct urxe_qp *qp, const struct urxe_packet *p)
{
	if (pkey_matches(qp->dev->pkeys[qp->attr.pkey_index], p->pkey))
		return true;
	if (URXE_OPCODE_SERVICE(p->opcode) == URXE_SERVICE_CNP)
		return p->pkey == URXE_DEFAULT_PKEY;
	return qp->qpn == URXE_QPN_GSI && pkey_find(qp->dev, p->pkey) >= 0;
}

static bool is_in_use(const struct urxe_dev *dev, uint32_t index)
{
	const struct urxe_qp *qp;

	for (uint32_t i = 0; (qp = idmap_next(&dev->qps, &i));) {
		if (qp->attr.state != URXE_QPS_RESET && qp->attr.pkey_index == index)
			return true;
	}
	return false;
}

int urxe_pkey_set(struct urxe_dev *dev, uint32_t index, uint16_t pkey)
{
	RECORD_ENTRY(dev, PKEY_SET, .value = index, .u16 = pkey);
	if (index >= URXE_MAX_PKEYS)
		return -EINVAL;
	if (!pkey_valid(pkey) && is_in_use(dev, index))
		return -EBUSY;
	pkey = pkey_valid(pkey) ? pkey : 0;
	if (dev->pkeys[index] == pkey)
		return 0;
	dev->pkeys[index] = pkey;
	copy_table_reset_proofs(dev);
	return 0;
}

uint16_t urxe_pkey(const struct urxe_dev *dev, uint32_t index)
{
	return dev->pkeys[index];
}
