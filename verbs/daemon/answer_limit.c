/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "daemon/answer_limit.h"

#include <string.h>

#include "adapter/adapter.h"
#include "process/log.h"

#define SECONDS 30

void answer_limit_extend(void)
{
	int rc = vnic_driver_limit_wait(adapter.nic, SECONDS);

	if (rc)
		log_error("cannot set the time limit of requests to urxed: %s", strerror(-rc));
}
