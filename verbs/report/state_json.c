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

#define AT_ONCE 1024 /* queue pairs that are written down between two signs of life */
#define SEALS   (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)

struct qp_entry {
	struct urxe_qp_attr attr;
	struct urxe_qp_init init;
	struct urxe_qp_load load;
	struct urxe_counters counters;
	bool direct;
	bool memory;
};

/* A copy of what is under the lock, since writing it down takes longer than others should wait. */
struct inventory {
	bool gone;
	struct urxe_counters counters;
	uint64_t direct[VNIC_DIRECT_COUNT];
	struct qp_entry *qps;
	size_t n_qps;
	struct urxe_mr_attr *mrs;
	size_t n_mrs;
	int socket; /* of who asks */
};

/* --- Under the lock */

/* As egress.c chooses the way, but for inboxes that are full for a moment. */
static bool is_direct(const struct urxe_qp_attr *attr)
{
	return vnic_driver_direct_allowed(port.nic) && egress_knows(&port.egress, attr->dest_qpn) &&
	       !memcmp(attr->path.dmac, port.who.mac, sizeof(port.who.mac));
}

static int copy_qps(struct inventory *inv)
{
	const struct qp *of;
	uint32_t at = 0;

	inv->qps = calloc(port.leases.used + 1, sizeof(*inv->qps));
	if (!inv->qps)
		return -ENOMEM;
	while ((of = leases_next(&port.leases, &at))) {
		struct qp_entry *entry = &inv->qps[inv->n_qps];
		const struct urxe_qp *qp = of->qp;

		urxe_qp_query(qp, &entry->attr, &entry->init);
		urxe_qp_load(qp, &entry->load);
		entry->counters = *urxe_qp_counters(qp);
		entry->direct = is_direct(&entry->attr);
		entry->memory = entry->direct && urxe_qp_direct(qp) &&
				entry->counters.event[URXE_EVENT_DIRECT_REQUESTS];
		inv->n_qps++;
	}
	return 0;
}

/* Calls with NULL only count. */
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

static int copy_mrs(struct inventory *inv)
{
	inv->mrs = calloc(each_mr(NULL) + 1, sizeof(*inv->mrs));
	if (!inv->mrs)
		return -ENOMEM;
	inv->n_mrs = each_mr(inv->mrs);
	return 0;
}

static int copy(struct inventory *inv)
{
	int rc = copy_qps(inv);

	inv->gone = port.gone;
	inv->counters = *urxe_dev_counters(port.dev);
	for (int i = 0; i < VNIC_DIRECT_COUNT; i++)
		inv->direct[i] = port_counter((enum vnic_direct_counter)i);
	return rc ? rc : copy_mrs(inv);
}

/* --- Without it */

static void write_engine_counters(struct json_text *j, const struct urxe_counters *counters)
{
	for (int i = 1; i < URXE_DROP_COUNT; i++)
		if (counters->drop[i])
			json_put_number(j, urxe_drop_name((enum urxe_drop)i), counters->drop[i]);
	for (int i = 0; i < URXE_EVENT_COUNT; i++)
		if (counters->event[i])
			json_put_number(j, urxe_event_name((enum urxe_event)i), counters->event[i]);
}

static void write_counters(struct json_text *j, const struct inventory *inv)
{
	json_put_open(j, "counters", '{');
	write_engine_counters(j, &inv->counters);
	for (int i = 0; i < VNIC_DIRECT_COUNT; i++)
		if (inv->direct[i])
			json_put_number(j, vnic_direct_counter_name((enum vnic_direct_counter)i),
					inv->direct[i]);
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
	json_put_open(j, "counters", '{');
	write_engine_counters(j, &qp->counters);
	json_put_close(j, '}');
	json_put_close(j, '}');
}

static void write_mr(struct json_text *j, const struct urxe_mr_attr *mr)
{
	char iova[19]; /* as text: readers of JSON may have no more than 63 bits for a number */

	json_put_open(j, NULL, '{');
	json_put_number(j, "key", mr->key);
	json_put_number(j, "pd", mr->pd);
	snprintf(iova, sizeof(iova), "0x%" PRIx64, mr->iova);
	json_put_string(j, "iova", iova);
	json_put_number(j, "length", mr->length);
	json_put_number(j, "access", mr->access);
	json_put_close(j, '}');
}

/* Who asked and does not listen any more misses it. */
static void send_status(int socket, int status)
{
	const struct vnic_attach_state reply = {.status = status};

	(void)send(socket, &reply, sizeof(reply), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void write_all(struct json_text *j, const struct inventory *inv)
{
	json_put_open(j, NULL, '{');
	json_put_bool(j, "gone", inv->gone);
	json_put_number(j, "pid", (uint64_t)getpid());
	json_put_string(j, "program", program_invocation_short_name);
	json_put_open(j, "qps", '[');
	for (size_t i = 0; i < inv->n_qps; i++) {
		if (i % AT_ONCE == 0)
			send_status(inv->socket, -EINPROGRESS);
		write_qp(j, &inv->qps[i]);
	}
	json_put_close(j, ']');
	json_put_open(j, "mrs", '[');
	for (size_t i = 0; i < inv->n_mrs; i++)
		write_mr(j, &inv->mrs[i]);
	json_put_close(j, ']');
	write_counters(j, inv);
	json_put_close(j, '}');
}

static int fill(int fd, const struct json_text *j)
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

/* Memory that nobody can change any more: its reader need not trust us. */
static int make_memory(const struct json_text *j)
{
	int fd, rc;

	if (j->failed)
		return -ENOMEM;
	fd = memfd_create("urxe-inventory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	rc = fill(fd, j);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

static void send_memory(int socket, int memory)
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

void inventory_send(int socket)
{
	struct inventory inv = {.socket = socket};
	struct json_text j = {.failed = false};
	int memory;

	send_status(socket, -EINPROGRESS);
	j.failed = copy(&inv) != 0;
	port_unlock();
	write_all(&j, &inv);
	memory = make_memory(&j);
	if (memory >= 0) {
		send_memory(socket, memory);
		close(memory);
	} else {
		send_status(socket, memory);
	}
	close(socket);
	free(j.text);
	free(inv.qps);
	free(inv.mrs);
	port_claim();
}
