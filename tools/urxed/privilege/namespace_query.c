/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/privilege/namespace_query.h"

#include <linux/capability.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vnic/server.h>

#include "common/log.h"
#include "urxed/privilege/capabilities.h"
#include "urxed/privilege/helper.h"

/*
 * How long the daemon waits. The kernel answers the helper from its own data, so only a helper that
 * is stopped or gets no processor takes longer. The daemon then asks again once that answer has
 * come, and until then waits no more.
 */
#define ANSWER_MS 1000

struct question {
	pid_t a, b;
	uint32_t number;
};

struct answer {
	uint32_t number; /* of the question */
	bool shared;
};

static struct helper helper = {.socket = -1};
static bool helper_lost; /* the helper has ended; the daemon itself has no right to look any more */
static uint32_t asked;   /* number of the last question */
static struct answer last;

static void answer_questions(void)
{
	struct answer answer;
	struct question q;

	while (recv(HELPER_SOCKET, &q, sizeof(q), 0) == sizeof(q)) {
		answer = (struct answer){q.number, vnic_server_share_user_namespace(q.a, q.b)};
		if (send(HELPER_SOCKET, &answer, sizeof(answer), MSG_NOSIGNAL) < 0)
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
	asked = last.number = 0;
}

static void lose_helper(void)
{
	log_line("the process that compares user namespaces has ended: packets between processes "
		 "take the switch from now on");
	helper_stop(&helper);
	helper_lost = true;
}

/* Waits for the answer to the last question up to `ms` milliseconds. True: it has come. */
static bool await_answer(int ms)
{
	struct pollfd pfd = {.fd = helper.socket, .events = POLLIN};

	if (last.number == asked)
		return true;
	if (poll(&pfd, 1, ms) != 1)
		return false;
	if (recv(helper.socket, &last, sizeof(last), 0) == sizeof(last))
		return last.number == asked;
	lose_helper();
	return false;
}

static bool ask_helper(pid_t a, pid_t b)
{
	const struct question q = {a, b, asked + 1};

	if (!await_answer(0))
		return false;
	if (send(helper.socket, &q, sizeof(q), MSG_NOSIGNAL) != sizeof(q)) {
		lose_helper();
		return false;
	}
	asked = q.number;
	return await_answer(ANSWER_MS) && last.shared;
}

bool namespace_query(void *ctx, pid_t a, pid_t b)
{
	(void)ctx;
	if (helper.socket >= 0)
		return ask_helper(a, b);
	return !helper_lost && vnic_server_share_user_namespace(a, b);
}
