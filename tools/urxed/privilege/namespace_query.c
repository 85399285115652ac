/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/privilege/namespace_query.h"

#include <errno.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vnic/server.h>

#include "common/clock.h"
#include "common/log.h"
#include "urxed/privilege/capabilities.h"
#include "urxed/privilege/helper.h"

/*
 * Limits how long the daemon's thread, which also forwards frames, waits for an answer. The kernel
 * answers the helper from its own data, so an answer takes longer only if the helper is stopped or
 * gets no processor. The first question waits up to ANSWER_MS. After one late answer the daemon
 * waits only SLOW_ANSWER_MS per question, and after each further late answer it asks nothing for
 * SLOW_PAUSE_NS. While an answer is outstanding, the daemon asks nothing and does not wait.
 */
#define ANSWER_MS      1000
#define SLOW_ANSWER_MS 100
#define SLOW_PAUSE_NS  NS_PER_SEC

/* Pause of the helper before it sends an answer again for which the kernel had no memory. */
#define SEND_AGAIN_US 10000

struct question {
	pid_t a, b;
	uint32_t number;
};

struct answer {
	uint32_t number; /* number of the question */
	bool shared;
};

static struct helper helper = {.socket = -1};
static bool helper_lost; /* the helper has ended, and the daemon lacks the right to look */
static bool is_slow;     /* an answer has once not come within ANSWER_MS */
static uint32_t asked;   /* number of the last question */
static uint64_t ask_at;  /* no question before this time, ns */
static struct answer last;

static bool has_peer_ended(int error)
{
	return error == EPIPE || error == ECONNRESET;
}

/* Sends until the kernel accepts the answer: the daemon asks nothing else before it has the answer.
 * Returns false if the daemon has ended. */
static bool send_answer(const struct answer *answer)
{
	while (send(HELPER_SOCKET, answer, sizeof(*answer), MSG_NOSIGNAL) < 0) {
		if (has_peer_ended(errno))
			return false;
		usleep(SEND_AGAIN_US);
	}
	return true;
}

static void answer_questions(void)
{
	struct answer answer;
	struct question q;

	while (recv(HELPER_SOCKET, &q, sizeof(q), 0) == sizeof(q)) {
		answer = (struct answer){q.number, vnic_server_share_user_namespace(q.a, q.b)};
		if (!send_answer(&answer))
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
	helper_lost = is_slow = false;
	asked = last.number = 0;
	ask_at = 0;
}

static void lose_namespace_helper(void)
{
	log_line("the process that compares user namespaces has ended: packets between processes "
		 "take the switch from now on");
	helper_stop(&helper);
	helper_lost = true;
}

/* Waits up to `ms` milliseconds for the answer to the last question. Returns whether the answer has
 * come. */
static bool await_answer(int ms)
{
	struct pollfd pfd = {.fd = helper.socket, .events = POLLIN};

	if (last.number == asked)
		return true;
	if (poll(&pfd, 1, ms) != 1)
		return false;
	if (recv(helper.socket, &last, sizeof(last), 0) == sizeof(last))
		return last.number == asked;
	lose_namespace_helper();
	return false;
}

/* Called if the answer to the last question has not come in time, or cannot come because the helper
 * has ended. Returns the result of namespace_query. */
static int handle_missing_answer(void)
{
	if (helper_lost)
		return -EPERM;
	if (!is_slow)
		log_line("the process that compares user namespaces does not answer within %u ms: "
			 "packets between processes take the switch until it does",
			 ANSWER_MS);
	if (is_slow)
		ask_at = now_ns() + SLOW_PAUSE_NS;
	is_slow = true;
	return -EBUSY;
}

static int ask_helper(pid_t a, pid_t b)
{
	const struct question q = {a, b, asked + 1};

	if (now_ns() < ask_at || !await_answer(0))
		return helper_lost ? -EPERM : -EBUSY;
	if (send(helper.socket, &q, sizeof(q), MSG_NOSIGNAL) < 0) {
		if (!has_peer_ended(errno))
			return -EBUSY;
		lose_namespace_helper();
		return -EPERM;
	}
	asked = q.number;
	if (!await_answer(is_slow ? SLOW_ANSWER_MS : ANSWER_MS))
		return handle_missing_answer();
	return last.shared ? 0 : -EPERM;
}

int namespace_query(void *ctx, pid_t a, pid_t b)
{
	(void)ctx;
	if (helper.socket >= 0)
		return ask_helper(a, b);
	return !helper_lost && vnic_server_share_user_namespace(a, b) ? 0 : -EPERM;
}
