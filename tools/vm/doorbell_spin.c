/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/doorbell_spin.h"

void doorbell_spin_rung(struct doorbell_spin *spin, uint64_t now)
{
	spin->quick = spin->rung_at && now - spin->rung_at < DOORBELL_SPIN_NS;
	spin->rung_at = now;
}

bool doorbell_spin_expects(const struct doorbell_spin *spin, uint64_t now)
{
	return spin->quick && now - spin->rung_at < DOORBELL_SPIN_NS;
}
