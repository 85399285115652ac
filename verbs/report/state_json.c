/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "report/state_json.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "memory/mr.h"
#include "port/port.h"
#include "report/json.h"

#define QPS_PER_REPLY \
	1024 /* queue pairs between two -EINPROGRESS replies, which keep the daemon waiting */
#define SEALS (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)

struct qp_entry {
	struct urxe_qp_attr attr;
	struct urxe_qp_init init;
	struct urxe_qp_load load;
	struct urxe_counters counters;
	bool direct;
	bool memory;
	bool uplink; /* frames to other hosts go by the direct uplink */
};

/* A copy of the state: writing the JSON text takes too long to hold the lock. */
struct snapshot {
	bool dead;
	struct urxe_counters counters;
	uint64_t direct[VNIC_DIRECT_COUNT];
	struct qp_entry *qps;
	size_t n_qps;
	struct urxe_mr_attr *mrs;
	size_t n_mrs;
	int socket; /* to the asking program */
};

/* --- With the lock of the port */

/* As tx.c routes frames, except while an inbox is full. */
static bool is_direct(const struct urxe_qp_attr *attr)
{
	return vnic_driver_direct_allowed(port.nic) && tx_has_inbox(&port.tx, attr->dest_qpn) &&
	       !memcmp(attr->path.dmac, port.welcome.mac, sizeof(port.welcome.mac));
}

static int copy_qps(struct snapshot *snapshot)
{
	const struct qp *of;
	uint32_t at = 0;

	snapshot->qps = calloc(port.leases.used + 1, sizeof(*snapshot->qps));
	if (!snapshot->qps)
		return -ENOMEM;
	while ((of = leases_next(&port.leases, &at))) {
		struct qp_entry *entry = &snapshot->qps[snapshot->n_qps];
		const struct urxe_qp *qp = of->qp;

		urxe_qp_query(qp, &entry->attr, &entry->init);
		urxe_qp_load(qp, &entry->load);
		entry->counters = *urxe_qp_counters(qp);
		entry->direct = is_direct(&entry->attr);
		entry->uplink = tx_by_uplink(&port.tx, entry->attr.path.dmac);
		entry->memory = entry->direct && urxe_qp_direct(qp) &&
				entry->counters.event[URXE_EVENT_DIRECT_REQUESTS];
		snapshot->n_qps++;
	}
	return 0;
}

/* Returns the number of regions; copies them if mrs is not NULL. */
static size_t each_mr(struct urxe_mr_attr *mrs)
{
	const struct uverbs_file *file;
	size_t n = 0;

	LIST_FOREACH(file, &port.files, link)
	{
		const struct object *object;
		uint32_t handle = 0;

		while ((object = handle_next(&file->handles, OBJECT_MR, &handle))) {
			if (mrs)
				urxe_mr_query(((const struct mr *)object)->mr, &mrs[n]);
			n++;
		}
	}
	return n;
}

static int copy_mrs(struct snapshot *snapshot)
{
	snapshot->mrs = calloc(each_mr(NULL) + 1, sizeof(*snapshot->mrs));
	if (!snapshot->mrs)
		return -ENOMEM;
	snapshot->n_mrs = each_mr(snapshot->mrs);
	return 0;
}

static int copy_state(struct snapshot *snapshot)
{
	int rc = copy_qps(snapshot);

	if (port.uplink)
		tx_count(&port.tx, VNIC_DIRECT_UPLINK_MISSED, packet_port_read_drops(port.uplink));
	snapshot->dead = port.dead;
	snapshot->counters = *urxe_dev_counters(port.dev);
	for (int i = 0; i < VNIC_DIRECT_COUNT; i++)
		snapshot->direct[i] = port_counter((enum vnic_direct_counter)i);
	return rc ? rc : copy_mrs(snapshot);
}

/* --- Without the lock */

static void write_engine_counters(struct json_text *j, const struct urxe_counters *counters)
{
	for (int i = 1; i < URXE_DROP_COUNT; i++)
		if (counters->drop[i])
			json_put_number(j, urxe_drop_name((enum urxe_drop)i), counters->drop[i]);
	for (int i = 0; i < URXE_EVENT_COUNT; i++)
		if (counters->event[i])
			json_put_number(j, urxe_event_name((enum urxe_event)i), counters->event[i]);
}

static void write_counters(struct json_text *j, const struct snapshot *snapshot)
{
	json_put_open(j, "counters", '{');
	write_engine_counters(j, &snapshot->counters);
	for (int i = 0; i < VNIC_DIRECT_COUNT; i++)
		if (snapshot->direct[i])
			json_put_number(j, vnic_direct_counter_name((enum vnic_direct_counter)i),
					snapshot->direct[i]);
	json_put_close(j, '}');
}

static const char *type_name(uint8_t type)
{
	return type == URXE_QPT_RC ? "RC" : type == URXE_QPT_UC ? "UC" : "UD";
}

static const char *state_name(uint8_t state)
{
	static const char *const names[URXE_QPS_COUNT] = {"RESET", "INIT", "RTR", "RTS",
							  "SQD",   "SQE",  "ERR"};

	return names[state];
}

static void write_peer(struct json_text *j, const struct qp_entry *qp)
{
	static const struct urxe_gid none;
	char text[INET6_ADDRSTRLEN];

	if (qp->init.type == URXE_QPT_UD || !memcmp(&qp->attr.path.dgid, &none, sizeof(none))) {
		json_put_null(j, "dgid");
		json_put_null(j, "dest_qpn");
		return;
	}
	inet_ntop(AF_INET6, qp->attr.path.dgid.raw, text, sizeof(text));
	json_put_string(j, "dgid", text);
	json_put_number(j, "dest_qpn", qp->attr.dest_qpn);
}

static void write_qp(struct json_text *j, const struct qp_entry *qp)
{
	json_put_open(j, NULL, '{');
	json_put_number(j, "qpn", qp->init.qpn);
	json_put_string(j, "type", type_name(qp->init.type));
	json_put_string(j, "state", state_name(qp->attr.state));
	json_put_number(j, "path_mtu", qp->attr.path_mtu ? 128u << qp->attr.path_mtu : 0);
	json_put_number(j, "sgid_index", qp->attr.path.sgid_index);
	write_peer(j, qp);
	json_put_number(j, "rq_psn", qp->attr.rq_psn);
	json_put_number(j, "sq_psn", qp->attr.sq_psn);
	json_put_number(j, "sends", qp->load.sends);
	json_put_number(j, "packets", qp->load.packets);
	json_put_number(j, "receives", qp->load.receives);
	json_put_number(j, "retries", qp->load.retries);
	json_put_number(j, "rnr_retries", qp->load.rnr_retries);
	json_put_number(j, "timeout", qp->attr.timeout);
	json_put_number(j, "rate_limit", qp->attr.rate_limit);
	json_put_bool(j, "direct", qp->direct);
	json_put_bool(j, "memory", qp->memory);
	json_put_bool(j, "uplink", qp->uplink);
	json_put_open(j, "counters", '{');
	write_engine_counters(j, &qp->counters);
	json_put_close(j, '}');
	json_put_close(j, '}');
}

static void write_mr(struct json_text *j, const struct urxe_mr_attr *mr)
{
	char iova[19]; /* as text, because JSON readers may have only 63 bits for a number */

	json_put_open(j, NULL, '{');
	json_put_number(j, "key", mr->key);
	json_put_number(j, "pd", mr->pd);
	snprintf(iova, sizeof(iova), "0x%" PRIx64, mr->iova);
	json_put_string(j, "iova", iova);
	json_put_number(j, "length", mr->length);
	json_put_number(j, "access", mr->access);
	json_put_close(j, '}');
}

/* The message is lost if the asking program no longer listens. */
static void send_status(int socket, int status)
{
	const struct vnic_attach_state reply = {.status = status};

	(void)send(socket, &reply, sizeof(reply), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* urxe show takes no text that is longer. */
#define PROGRAM_MAX 63

static void write_document(struct json_text *j, const struct snapshot *snapshot)
{
	char program[PROGRAM_MAX + 1];

	json_put_open(j, NULL, '{');
	json_put_bool(j, "gone", snapshot->dead);
	json_put_number(j, "pid", (uint64_t)getpid());
	snprintf(program, sizeof(program), "%s", program_invocation_short_name);
	json_put_string(j, "program", program);
	json_put_open(j, "qps", '[');
	for (size_t i = 0; i < snapshot->n_qps; i++) {
		if (i % QPS_PER_REPLY == 0)
			send_status(snapshot->socket, -EINPROGRESS);
		write_qp(j, &snapshot->qps[i]);
	}
	json_put_close(j, ']');
	json_put_open(j, "mrs", '[');
	for (size_t i = 0; i < snapshot->n_mrs; i++)
		write_mr(j, &snapshot->mrs[i]);
	json_put_close(j, ']');
	write_counters(j, snapshot);
	json_put_close(j, '}');
}

static int write_memfd(int fd, const struct json_text *j)
{
	size_t done = 0;
	ssize_t n;

	for (; done < j->len; done += (size_t)n) {
		n = write(fd, j->text + done, j->len - done);
		if (n < 0)
			return -errno;
	}
	return fcntl(fd, F_ADD_SEALS, SEALS) ? -errno : 0;
}

/* Sealed memory: its reader need not trust this process. */
static int make_memfd(const struct json_text *j)
{
	int fd, rc;

	if (j->failed)
		return -ENOMEM;
	fd = memfd_create("urxe-state", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	rc = write_memfd(fd, j);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

static void send_memfd(int socket, int memory)
{
	struct vnic_attach_state reply = {.status = 0};
	struct iovec iov = {&reply, sizeof(reply)};
	struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} ancillary = {
		.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS},
	};

	memcpy(CMSG_DATA(&ancillary.header), &memory, sizeof(int));
	header.msg_control = &ancillary;
	header.msg_controllen = sizeof(ancillary);
	(void)sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void state_json_send(int socket)
{
	struct snapshot snapshot = {.socket = socket};
	struct json_text j = {.failed = false};
	int memory;

	send_status(socket, -EINPROGRESS);
	j.failed = copy_state(&snapshot) != 0;
	port_unlock();
	write_document(&j, &snapshot);
	memory = make_memfd(&j);
	if (memory >= 0) {
		send_memfd(socket, memory);
		close(memory);
	} else {
		send_status(socket, memory);
	}
	close(socket);
	free(j.text);
	free(snapshot.qps);
	free(snapshot.mrs);
	port_claim();
}
