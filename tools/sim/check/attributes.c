/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Attributes of QPs and of memory regions that the application changes. */
#include "sim/check/check.h"

#include <errno.h>

#include "sim/host/simconn.h"
#include "sim/world.h"

static void check_attribute(const struct endpoint *end, const char *name, uint32_t value,
			    uint32_t set)
{
	if (value != set)
		world_fail(end->host->world, "host %u: %s of qp %06x is %u, not %u", end->host->id,
			   name, end->qpn, value, set);
}

void check_attributes(const struct endpoint *end)
{
	const struct urxe_qp_attr *set = &end->change.attr;
	struct urxe_qp_attr attr;
	struct urxe_qp_init init;

	if (end->conn->attr.type != URXE_QPT_RC)
		return;
	urxe_qp_query(end->qp, &attr, &init);
	check_attribute(end, "access", attr.access, set->access);
	check_attribute(end, "min_rnr_timer", attr.min_rnr_timer, set->min_rnr_timer);
	check_attribute(end, "timeout", attr.timeout, set->timeout);
	check_attribute(end, "retry_cnt", attr.retry_cnt, set->retry_cnt);
	check_attribute(end, "rnr_retry", attr.rnr_retry, set->rnr_retry);
	check_attribute(end, "path_mtu", attr.path_mtu, set->path_mtu);
	check_attribute(end, "max_rd_atomic", attr.max_rd_atomic, set->max_rd_atomic);
	check_attribute(end, "max_dest_rd_atomic", attr.max_dest_rd_atomic,
			set->max_dest_rd_atomic);
}

/* Whether some window is in this state. */
static bool has_window(const struct simhost *host, enum window_state state)
{
	for (uint32_t i = 0; i < host->n_ends; i++) {
		const struct endpoint *end = host->end[i];
		const struct window *window = &end->conn->stream[!end->side].mw;

		if (window->handle && window->state == state)
			return true;
	}
	return false;
}

void check_rereg(const struct simhost *host, int rc)
{
	const bool bound = has_window(host, WINDOW_BOUND);
	const bool may_be_bound =
		bound || has_window(host, WINDOW_BINDING) || has_window(host, WINDOW_INVALIDATING);

	if (urxe_mr_key(host->mr) != host->key)
		world_fail(host->world, "host %u: re-registration changed the key", host->id);
	if (rc ? rc != -EBUSY || !may_be_bound : bound)
		world_fail(host->world, "host %u: re-registration of its memory returned %d",
			   host->id, rc);
}
