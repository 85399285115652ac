/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/privilege/namespace_query.h"

#include <linux/capability.h>
#include <poll.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vnic/server.h>

#include "common/log.h"
#include "urxed/privilege/capabilities.h"
#include "urxed/privilege/helper.h"

/*
 * How long the daemon waits. The kernel answers the helper from its own data, so only a stopped
 * helper takes longer.
 */
#define ANSWER_MS 1000

struct question {
	pid_t a, b;
};

static struct helper helper = {.socket = -1};
static bool helper_lost; /* the helper failed; the daemon itself has no right to look any more */

static void answer_questions(void)
{
	struct question q;
	uint8_t shared;

	while (recv(HELPER_SOCKET, &q, sizeof(q), 0) == sizeof(q)) {
		shared = vnic_server_share_user_namespace(q.a, q.b);
		if (send(HELPER_SOCKET, &shared, sizeof(shared), MSG_NOSIGNAL) < 0)
			return;
	}
}

int namespace_query_start(void)
{
	const uint64_t needed = CAPABILITY(CAP_SYS_PTRACE);

	return capabilities_get() & needed
		       ? helper_start(&helper, "urxed-userns", needed, answer_questions)
		       : 0;
}

void namespace_query_stop(void)
{
	helper_stop(&helper);
	helper_lost = false;
}

static bool ask_helper(const struct question *q)
{
	struct pollfd pfd = {.fd = helper.socket, .events = POLLIN};
	uint8_t shared;

	if (send(helper.socket, q, sizeof(*q), MSG_NOSIGNAL) == sizeof(*q) &&
	    poll(&pfd, 1, ANSWER_MS) == 1 &&
	    recv(helper.socket, &shared, sizeof(shared), 0) == sizeof(shared))
		return shared;
	log_line("the process that compares user namespaces has ended: packets between processes "
		 "take the switch from now on");
	helper_stop(&helper);
	helper_lost = true;
	return false;
}

bool namespace_query(void *ctx, pid_t a, pid_t b)
{
	const struct question q = {a, b};

	(void)ctx;
	if (helper.socket >= 0)
		return ask_helper(&q);
	return !helper_lost && vnic_server_share_user_namespace(a, b);
}
