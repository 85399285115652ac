/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "urxed/report/process_states.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <vnic/attach_protocol.h>

#include "common/clock.h"
#include "common/json_fields.h"
#include "common/sealed_text.h"
#include "common/unix_packet.h"
#include "urxed/report/close_alarm.h"
#include "urxed/report/control_client.h"
#include "urxed/report/state_reader.h"
#include "urxed/session/qpn_table.h"

/* A process sends -EINPROGRESS at the start and then after this many QPs
 * (verbs/session/state_document.c). */
#define QPS_PER_PROGRESS 1024

/* The bytes and units (state_reader.h) that the answers of one user's processes may still cost. */
struct user {
	json_int_t uid;
	uint64_t bytes;
	uint32_t units;
};

/* A process that the daemon has asked. */
struct process {
	json_t *lease; /* the process's first row in `leases`, which the report owns */
	json_int_t port;
	uint32_t qpns;     /* leased QPNs plus added ones; some may count twice */
	uint32_t progress; /* number of further -EINPROGRESS that give it time */
	uint64_t end;      /* the process's time ends at this waited_until_now(), ns */
	struct user *user;
};

struct collection {
	json_t *report;
	struct process *processes; /* the processes that may still send a packet */
	struct pollfd *sockets;    /* the socket of each process, by the same index */
	size_t n;
	struct user *users;
	size_t n_users;
	uint32_t units; /* units that all users' answers may still cost */
	/*
	 * Time that reading documents took, ns. Meanwhile answers wait in the sockets, so this time
	 * does not count for deadlines. It has a limit, because each process has only one document.
	 */
	uint64_t reading;
};

static uint64_t waited_until_now(const struct collection *c)
{
	return now_ns() - c->reading;
}

/* --- Processes that are asked */

static struct user *find_user(struct collection *c, json_int_t uid)
{
	size_t i;

	for (i = 0; i < c->n_users; i++)
		if (c->users[i].uid == uid)
			return &c->users[i];
	c->users[c->n_users] = (struct user){uid, PROCESS_STATES_BYTES, PROCESS_STATES_USER_UNITS};
	return &c->users[c->n_users++];
}

static struct process *find_port(const struct collection *c, json_int_t port)
{
	size_t i;

	for (i = c->n; i; i--)
		if (c->processes[i - 1].port == port)
			return &c->processes[i - 1];
	return NULL;
}

static void add_lease(struct collection *c, json_t *lease)
{
	json_int_t port = json_get_number(lease, "port"),
		   qpns = json_get_number(lease, "qpn_count"),
		   added = json_get_number(lease, "added_qpns");
	struct process *p = find_port(c, port);

	json_object_set_new(lease, "answered", json_false());
	if (!json_is_true(json_object_get(lease, "asked")))
		return;
	if (!p) {
		p = &c->processes[c->n++];
		*p = (struct process){.lease = lease,
				      .port = port,
				      .user = find_user(c, json_get_number(lease, "uid"))};
		if (added > 0 && added <= QPN_TABLE_PER_OWNER)
			p->qpns = (uint32_t)added;
	}
	if (qpns > 0 && qpns <= (json_int_t)VNIC_LEASE_QPNS)
		p->qpns += (uint32_t)qpns;
	p->progress = 2 + p->qpns / QPS_PER_PROGRESS;
}

/* Lists the processes that the daemon has asked, and their users. Returns false if memory is
 * lacking. The caller calls free_arrays in both cases. */
static bool list_processes(struct collection *c)
{
	json_t *leases = json_object_get(c->report, "leases"), *lease;
	size_t i, n = json_array_size(leases);

	c->processes = calloc(n + 1, sizeof(*c->processes));
	c->users = calloc(n + 1, sizeof(*c->users));
	if (!c->processes || !c->users)
		return false;
	json_array_foreach(leases, i, lease)
	{
		add_lease(c, lease);
	}
	return true;
}

static void free_arrays(struct collection *c)
{
	free(c->processes);
	free(c->users);
	free(c->sockets);
}

/* --- The state of one process */

static void add_rows(json_t *report, const char *key, const json_t *state, const json_t *lease)
{
	json_t *row;
	size_t i;

	json_array_foreach(json_object_get(state, key), i, row)
	{
		json_object_set(row, "pid", json_object_get(lease, "pid"));
		json_object_set(row, "process", json_object_get(lease, "process"));
		json_array_append(json_object_get(report, key), row);
	}
}

/* Adds the process's port to its QPs. The port tells processes apart whose PIDs the daemon does not
 * see and that all have the PID 0. */
static void add_ports(const json_t *state, const json_t *lease)
{
	json_t *qp;
	size_t i;

	json_array_foreach(json_object_get(state, "qps"), i, qp)
	{
		json_object_set(qp, "port", json_object_get(lease, "port"));
	}
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
						state_counter_meaning(name)));
	}
}

/* Returns the number of the process's QPs whose QPNs are in the lease. */
static uint32_t count_qps(const json_t *state, const json_t *lease)
{
	json_int_t first = json_get_number(lease, "qpn_first"),
		   count = json_get_number(lease, "qpn_count");
	uint32_t n = 0;
	json_t *qp;
	size_t i;

	json_array_foreach(json_object_get(state, "qps"), i, qp)
	{
		json_int_t qpn = json_get_number(qp, "qpn");

		n += qpn >= first && qpn - first < count;
	}
	return n;
}

/* Marks all leases of the process as answered. */
static void mark_answered(json_t *leases, const struct process *p, const json_t *state)
{
	json_t *lease;
	size_t i;

	json_array_foreach(leases, i, lease)
	{
		if (json_get_number(lease, "port") != p->port)
			continue;
		json_object_set_new(lease, "answered", json_true());
		json_object_set_new(lease, "qps", json_integer(count_qps(state, lease)));
		json_object_set(lease, "mrs", json_object_get(state, "n_mrs"));
	}
}

static void add_state(struct collection *c, const struct process *p, json_t *state)
{
	mark_answered(json_object_get(c->report, "leases"), p, state);
	add_ports(state, p->lease);
	add_rows(c->report, "qps", state, p->lease);
	add_rows(c->report, "mrs", state, p->lease);
	add_process_counters(c->report, state, p->lease);
}

/*
 * Returns the most QPs that the answer may have: one for each QPN, leased or added, that the
 * process had in the daemon's report, and one further block, because the process may have leased
 * one before its answer.
 */
static uint32_t most_qps(const struct process *p)
{
	return p->qpns + VNIC_LEASE_QPNS;
}

/*
 * Returns the units (state_reader.h) that reading the answer of process `p` may use: no more than
 * its user and all users together have left.
 */
static uint32_t units_of(const struct collection *c, const struct process *p)
{
	uint32_t units =
		most_qps(p) * PROCESS_STATES_QP_UNITS + STATE_MRS_MAX * PROCESS_STATES_MR_UNITS;

	if (units > p->user->units)
		units = p->user->units;
	return units < c->units ? units : c->units;
}

/* Reads an answer and adds it to the report. Returns a text that says what is wrong with the
 * answer, or NULL. */
static const char *read_state(struct collection *c, struct process *p, const char *text, size_t len,
			      char error[STATE_ERROR])
{
	uint32_t units = units_of(c, p);
	struct state_limits limits = {.qps = most_qps(p), .units = units};
	json_t *state = state_read(text, len, &limits, error);

	if (!state)
		return error;
	/* Only an accepted document counts: the memory of a refused one is free again. */
	p->user->units -= units - limits.units;
	c->units -= units - limits.units;
	add_state(c, p, state);
	json_decref(state);
	return NULL;
}

static const char *read_memory(struct collection *c, struct process *p, int memory,
			       char error[STATE_ERROR])
{
	const char *refused;
	size_t len;
	char *text;
	int rc = sealed_text_read(memory, p->user->bytes, &text, &len);

	if (rc == -EFBIG)
		return "it is longer than urxe show reads";
	if (rc)
		return "it is not in sealed memory";
	p->user->bytes -= len;
	refused = read_state(c, p, text, len, error);
	free(text);
	return refused;
}

static void take_state(struct collection *c, struct process *p, int memory)
{
	char error[STATE_ERROR];
	const char *refused = read_memory(c, p, memory, error);

	if (refused)
		json_object_set_new(p->lease, "refused", json_string(refused));
}

/* --- The sockets */

/* Reads no more from a process; the last process of the array takes its place. */
static void end_process(struct collection *c, size_t i)
{
	c->n--;
	c->processes[i] = c->processes[c->n];
	c->sockets[i] = c->sockets[c->n];
}

/*
 * Drops the processes without a socket, because poll(2) accepts no more entries than RLIMIT_NOFILE.
 */
static void end_unconnected(struct collection *c)
{
	size_t i;

	for (i = c->n; i--;)
		if (c->sockets[i].fd < 0)
			end_process(c, i);
}

/* Gives each process its socket, and time until `end`. Returns false if memory is lacking. */
static bool assign_sockets(struct collection *c, const struct process_sockets *sockets,
			   uint64_t end)
{
	struct process *p;
	uint32_t i;

	c->sockets = calloc(c->n + 1, sizeof(*c->sockets));
	if (!c->sockets)
		return false;
	for (i = 0; i < c->n; i++) {
		c->sockets[i] = (struct pollfd){-1, POLLIN, 0};
		c->processes[i].end = end;
	}
	for (i = 0; i < sockets->n; i++) {
		p = find_port(c, sockets->ports[i]);
		if (p)
			c->sockets[p - c->processes].fd = sockets->fds[i];
	}
	end_unconnected(c);
	return true;
}

/* Gives a process more time, because it has sent -EINPROGRESS, unless it has already done so as
 * often as p->progress allowed. */
static void note_progress(const struct collection *c, struct process *p)
{
	uint64_t end = waited_until_now(c) + CONTROL_CLIENT_PROGRESS_MS * NS_PER_MS;

	if (!p->progress)
		return;
	p->progress--;
	if (p->end < end)
		p->end = end;
}

/* Receives a packet of a process. Returns false if the process's answer has ended, so that no
 * further packet counts. */
static bool receive_answer(struct collection *c, struct process *p, int socket)
{
	struct vnic_attach_state answer = {.status = -EPROTO};
	struct unix_packet_extras came;
	uint64_t begin;
	int len;

	/* The kernel closes descriptors for which `came` has no room, which may wait. */
	close_alarm_begin();
	len = unix_packet_recv(socket, &answer, sizeof(answer), &came);
	close_alarm_end();
	if (len != sizeof(answer))
		answer.status = -EPROTO;
	if (answer.status == -EINPROGRESS)
		note_progress(c, p);
	if (!answer.status) {
		begin = now_ns();
		take_state(c, p, came.fds[0]);
		c->reading += now_ns() - begin;
	}
	close_alarm_begin();
	unix_packet_close_fds(&came);
	close_alarm_end();
	return answer.status && (len > 0 || len == -EPROTO);
}

/* Drops the processes whose time is over. Returns the longest time that one of the others has left,
 * ns; 0: none is left. */
static uint64_t time_left(struct collection *c, uint64_t now)
{
	uint64_t left = 0;
	size_t i;

	for (i = c->n; i--;) {
		if (c->processes[i].end <= now)
			end_process(c, i);
		else if (c->processes[i].end - now > left)
			left = c->processes[i].end - now;
	}
	return left;
}

/* Takes one packet of each process whose socket is ready. */
static void receive_answers(struct collection *c)
{
	size_t i;

	for (i = c->n; i--;)
		if (c->sockets[i].revents && !receive_answer(c, &c->processes[i], c->sockets[i].fd))
			end_process(c, i);
}

/* Takes one packet of each process per round, so that a process that sends without end does not
 * keep out others. */
static void collect(struct collection *c)
{
	const uint64_t last = now_ns() + CONTROL_CLIENT_LONGEST_S * NS_PER_SEC;
	uint64_t left;

	while (now_ns() < last) {
		left = time_left(c, waited_until_now(c));
		if (!left)
			break;
		if (poll(c->sockets, c->n, (int)(left / NS_PER_MS) + 1) >= 0)
			receive_answers(c);
		else if (errno != EINTR)
			break;
	}
}

void process_states_collect(json_t *report, const struct process_sockets *sockets, uint32_t wait_ms)
{
	struct collection c = {.report = report, .units = PROCESS_STATES_UNITS};
	uint64_t end = now_ns() + wait_ms * NS_PER_MS;

	json_object_set_new(report, "qps", json_array());
	json_object_set_new(report, "mrs", json_array());
	if (list_processes(&c) && assign_sockets(&c, sockets, end))
		collect(&c);
	free_arrays(&c);
}

void process_states_add(json_t *report, const char *text, size_t len)
{
	struct collection c = {.report = report, .units = PROCESS_STATES_UNITS};
	char error[STATE_ERROR];
	const char *refused;

	json_object_set_new(report, "qps", json_array());
	json_object_set_new(report, "mrs", json_array());
	if (list_processes(&c) && c.n) {
		refused = read_state(&c, c.processes, text, len, error);
		if (refused)
			json_object_set_new(c.processes->lease, "refused", json_string(refused));
	}
	free_arrays(&c);
}
