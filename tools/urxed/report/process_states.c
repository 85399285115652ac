/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/report/process_states.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <rxe/counters.h>
#include <vnic/attach.h>
#include <vnic/inbox.h>

#include "common/clock.h"
#include "common/sealed_text.h"
#include "common/unix_packet.h"
#include "urxed/report/control_client.h"

/* --- Leases whose process has not answered */

static bool is_unanswered(const json_t *lease)
{
	return json_is_true(json_object_get(lease, "asked")) &&
	       json_is_false(json_object_get(lease, "answered"));
}

static bool has_unanswered(const json_t *leases)
{
	json_t *lease;
	size_t i;

	json_array_foreach(leases, i, lease)
	{
		if (is_unanswered(lease))
			return true;
	}
	return false;
}

static json_t *find_unanswered(const json_t *leases, pid_t pid)
{
	json_t *lease;
	size_t i;

	json_array_foreach(leases, i, lease)
	{
		if (is_unanswered(lease) &&
		    json_integer_value(json_object_get(lease, "pid")) == pid)
			return lease;
	}
	return NULL;
}

/* --- The state of one process */

static void add_rows(json_t *report, const char *key, const json_t *state, const json_t *lease)
{
	json_t *row, *copy;
	size_t i;

	json_array_foreach(json_object_get(state, key), i, row)
	{
		copy = json_is_object(row) ? json_copy(row) : NULL;
		json_object_set(copy, "pid", json_object_get(lease, "pid"));
		json_object_set(copy, "process", json_object_get(lease, "process"));
		json_array_append_new(json_object_get(report, key), copy);
	}
}

static const char *find_counter_meaning(const char *name)
{
	static const struct {
		const char *name, *text;
	} direct[] = {
#define DIRECT_ROW(id, name, text) {name, text},
		VNIC_DIRECT_LIST(DIRECT_ROW)
#undef DIRECT_ROW
	};
	int i;

	for (i = 0; i < URXE_DROP_COUNT; i++)
		if (!strcmp(name, urxe_drop_name((enum urxe_drop)i)))
			return urxe_drop_text((enum urxe_drop)i);
	for (i = 0; i < URXE_EVENT_COUNT; i++)
		if (!strcmp(name, urxe_event_name((enum urxe_event)i)))
			return urxe_event_text((enum urxe_event)i);
	for (i = 0; i < VNIC_DIRECT_COUNT; i++)
		if (!strcmp(name, direct[i].name))
			return direct[i].text;
	return NULL;
}

static void add_process_counters(json_t *report, json_t *state, const json_t *lease)
{
	json_t *process = json_object_get(lease, "process"), *pid = json_object_get(lease, "pid");
	const char *name;
	json_t *value;

	json_object_foreach(json_object_get(state, "counters"), name, value)
	{
		json_array_append_new(json_object_get(report, "counters"),
				      json_pack("{s:O?, s:O?, s:s, s:O, s:s?}", "of", process,
						"pid", pid, "name", name, "value", value, "meaning",
						find_counter_meaning(name)));
	}
}

static json_t *count_of(const json_t *state, const char *key)
{
	return json_integer((json_int_t)json_array_size(json_object_get(state, key)));
}

/* The number of the process' QPs whose QPNs are in the lease. */
static uint32_t count_qps(const json_t *state, const json_t *lease)
{
	json_int_t first = json_integer_value(json_object_get(lease, "qpn_first"));
	json_int_t count = json_integer_value(json_object_get(lease, "qpn_count"));
	uint32_t n = 0;
	json_t *qp;
	size_t i;

	json_array_foreach(json_object_get(state, "qps"), i, qp)
	{
		json_int_t qpn = json_integer_value(json_object_get(qp, "qpn"));

		n += qpn >= first && qpn - first < count;
	}
	return n;
}

/* Marks all leases of the process of `of`. */
static void mark_answered(json_t *leases, const json_t *of, const json_t *state)
{
	json_int_t port = json_integer_value(json_object_get(of, "port"));
	json_t *lease;
	size_t i;

	json_array_foreach(leases, i, lease)
	{
		if (json_integer_value(json_object_get(lease, "port")) != port)
			continue;
		json_object_set_new(lease, "answered", json_true());
		json_object_set_new(lease, "qps", json_integer(count_qps(state, lease)));
		json_object_set_new(lease, "mrs", count_of(state, "mrs"));
	}
}

static void add_process_state(json_t *report, const json_t *lease, int memory)
{
	json_t *state = NULL;
	size_t len;
	char *text;

	if (!sealed_text_read(memory, &text, &len)) {
		state = json_loadb(text, len, 0, NULL);
		free(text);
	}
	if (!state)
		return;
	mark_answered(json_object_get(report, "leases"), lease, state);
	add_rows(report, "qps", state, lease);
	add_rows(report, "mrs", state, lease);
	add_process_counters(report, state, lease);
	json_decref(state);
}

/* --- All processes */

/* False: the socket is closed. *alive: a process has answered, or has said -EINPROGRESS. */
static bool receive_answer(json_t *report, int socket, bool *alive)
{
	struct vnic_attach_state answer;
	struct unix_packet_extras came;
	int len = unix_packet_recv(socket, &answer, sizeof(answer), &came);
	json_t *lease = NULL;

	if (len == sizeof(answer) && (!answer.status || answer.status == -EINPROGRESS))
		lease = find_unanswered(json_object_get(report, "leases"), came.pid);
	*alive = lease;
	if (lease && !answer.status)
		add_process_state(report, lease, came.fds[0]);
	unix_packet_close_fds(&came);
	return len > 0;
}

void process_states_collect(json_t *report, int socket)
{
	json_t *leases = json_object_get(report, "leases"), *lease;
	uint64_t now = now_ns(), end = now + CONTROL_CLIENT_ANSWER_MS * NS_PER_MS;
	const uint64_t last = now + CONTROL_CLIENT_LONGEST_S * NS_PER_SEC;
	struct pollfd pfd = {socket, POLLIN, 0};
	bool alive;
	size_t i;

	json_object_set_new(report, "qps", json_array());
	json_object_set_new(report, "mrs", json_array());
	json_array_foreach(leases, i, lease)
	{
		json_object_set_new(lease, "answered", json_false());
	}
	for (; has_unanswered(leases) && now < end && now < last; now = now_ns()) {
		if (poll(&pfd, 1, (int)((end - now) / NS_PER_MS) + 1) <= 0 ||
		    !receive_answer(report, socket, &alive))
			break;
		if (alive)
			end = now_ns() + CONTROL_CLIENT_ANSWER_MS * NS_PER_MS;
	}
}
