/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "requests/hca_choice.h"

#include <hca/hca.h>

#include "adapter/adapter.h"
#include "process/settings.h"
#include "requests/daemon_requests.h"

/* Whether the HCA has the source GID and the path MTU of the connection. If not, sets *reason. With
 * adapter.lock. */
static bool is_possible(const struct urxe_qp_attr *attr, enum way_reason *reason)
{
	bool possible;

	*reason = WAY_NO_HCA;
	if (!adapter.hca.hca)
		return false;
	possible = hca_has_gid(adapter.hca.hca, attr->path.sgid_index) &&
		   hca_has_mtu(adapter.hca.hca, attr->path_mtu);
	*reason = WAY_ADDRESS;
	return possible;
}

bool adapter_hca_chooses(const struct urxe_qp_attr *attr, bool number_unknown,
			 enum way_reason *reason)
{
	bool possible;

	adapter_lock();
	possible = is_possible(attr, reason);
	adapter_unlock();
	if (!possible)
		return false;
	*reason = number_unknown ? WAY_NUMBER_UNKNOWN : WAY_FORCED;
	if (number_unknown || settings_hca_way() == HCA_WAY_HCA)
		return true;
	*reason = adapter_query_qpn(attr->path.dgid.raw, attr->dest_qpn) ? WAY_OTHER_HOST
									 : WAY_SAME_HOST;
	return *reason == WAY_OTHER_HOST;
}
