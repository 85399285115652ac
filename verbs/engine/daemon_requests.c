/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Requests of the process to the daemon: next hops, QPNs, remote QPs, inboxes of peers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/port_private.h"
#include "report/log.h"

/* The NIC of an open context, as soon as the port has a daemon. NULL: the port is dead. */
static struct vnic_driver *borrow_nic(void)
{
	struct vnic_driver *nic = NULL;

	if (!port_hold())
		return NULL;
	port_lock();
	while (port.outage.on)
		lock_await(&port.lock, &port.back);
	if (!port.gone) {
		nic = port.nic;
		port.nic_users++;
	}
	port_unlock();
	if (!nic)
		port_close();
	return nic;
}

/* True: the daemon has gone, and the next daemon may be asked the same. */
static bool return_nic(int rc)
{
	bool again = rc == -ECONNRESET || rc == -EPIPE;

	port_lock();
	port.nic_users--;
	/* The engine thread may not have noticed. */
	if (again && port_connected())
		engine_thread_disconnected();
	again = again && !port.gone;
	port_unlock();
	port_close();
	return again;
}

/* Asks the daemon, and if it ends meanwhile, the next daemon. -EIO: the port is dead. */
typedef int ask_fn(struct vnic_driver *nic, void *question);

static int ask_daemon(ask_fn *ask, void *question)
{
	struct vnic_driver *nic;
	int rc;

	do {
		nic = borrow_nic();
		if (!nic)
			return -EIO;
		rc = ask(nic, question);
	} while (return_nic(rc));
	return rc;
}

struct next_hop_question {
	uint8_t sgid_index;
	const uint8_t *dgid;
	struct vnic_next_hop *hop;
};

static int ask_next_hop(struct vnic_driver *nic, void *question)
{
	const struct next_hop_question *q = question;

	return vnic_driver_resolve(nic, q->sgid_index, q->dgid, q->hop);
}

/* True: the destination is this host; its address is known without the daemon. */
static bool is_here(uint8_t sgid_index, const uint8_t dgid[16], struct vnic_next_hop *hop)
{
	const struct vnic_attach_gid *gids = port.who.port.gids;
	bool here = false;

	port_lock();
	if (!port.gone && sgid_index < VNIC_ATTACH_GIDS && gids[sgid_index].valid)
		for (int i = 0; i < VNIC_ATTACH_GIDS && !here; i++)
			here = gids[i].valid && !memcmp(gids[i].raw, dgid, sizeof(gids[i].raw));
	if (here) {
		*hop = (struct vnic_next_hop){.hop_limit = 0};
		memcpy(hop->mac, port.who.mac, sizeof(hop->mac));
	}
	port_unlock();
	return here;
}

int port_resolve(uint8_t sgid_index, const uint8_t dgid[16], struct vnic_next_hop *hop)
{
	struct next_hop_question question = {sgid_index, dgid, hop};

	return is_here(sgid_index, dgid, hop) ? 0 : ask_daemon(ask_next_hop, &question);
}

/* 0: a block is wanted; 1: the process has free numbers. */
static int check_lease(void)
{
	int rc = 0;

	port_lock();
	if (!leases_full(&port.leases))
		rc = 1;
	else if (port.leases.n == VNIC_LEASES_MAX)
		rc = -EINVAL;
	port_unlock();
	return rc;
}

/* Gets another block of numbers; with port_lease_lock. */
static int extend(struct vnic_driver *nic)
{
	struct lease_block *block;
	int rc = check_lease();

	if (rc)
		return rc < 0 ? rc : 0;
	block = calloc(1, sizeof(*block));
	if (!block)
		return -ENOMEM;
	rc = vnic_driver_lease(nic, &block->qpn_first);
	if (rc) {
		free(block);
		return rc;
	}
	log_info("QPNs %#x to %#x", block->qpn_first, block->qpn_first + VNIC_LEASE_QPNS - 1);
	port_lock();
	leases_add(&port.leases, block);
	port_unlock();
	return 0;
}

static int ask_lease(struct vnic_driver *nic, void *unused)
{
	int rc;

	(void)unused;
	pthread_mutex_lock(&port_lease_lock);
	rc = extend(nic);
	pthread_mutex_unlock(&port_lease_lock);
	return rc;
}

int port_lease(void)
{
	int rc = ask_daemon(ask_lease, NULL);

	if (rc)
		log_info("no more queue pairs: %s", strerror(-rc));
	return rc;
}

static int ask_register(struct vnic_driver *nic, void *question)
{
	struct remote *remote = question;

	remote->daemon = port.daemons;
	return vnic_driver_register(nic, remote->local_qpn, remote->dgid, remote->qpn);
}

static int ask_unregister(struct vnic_driver *nic, void *question)
{
	struct remote *remote = question;

	/* An earlier daemon knew the remote QP, this one does not. */
	if (remote->daemon != port.daemons)
		return 0;
	return vnic_driver_unregister(nic, remote->local_qpn, remote->dgid, remote->qpn);
}

int port_register(struct remote *remote, bool connected)
{
	return ask_daemon(connected ? ask_register : ask_unregister, remote);
}

/* Without the lock. A peer whose inbox this process has may send to this process as well. */
static void expect_frames(void)
{
	if (port.inbox && !atomic_exchange(&port.inbox_met, true))
		vnic_inbox_populate(port.inbox);
}

/* Gets the inbox of the process that has a QPN. */
static int ask_introduction(struct vnic_driver *nic, void *question)
{
	uint32_t qpn = *(const uint32_t *)question;
	int fds[VNIC_INBOX_FDS];
	int rc = vnic_driver_introduce(nic, qpn, fds);

	if (rc)
		return rc;
	port_lock();
	rc = egress_add(&port.egress, qpn, fds);
	port_unlock();
	expect_frames();
	return rc;
}

static bool is_known(uint32_t qpn)
{
	bool known;

	port_lock();
	known = port.dev && egress_knows(&port.egress, qpn);
	port_unlock();
	return known;
}

void port_meet(uint32_t qpn)
{
	int rc = is_known(qpn) ? 0 : ask_daemon(ask_introduction, &qpn);

	if (rc && rc != -EIO)
		log_info("frames to qp %#x go by the switch: %s", qpn, strerror(-rc));
}

void port_met(uint32_t qpn, const int fds[VNIC_INBOX_FDS])
{
	int rc;

	/* The process is known: its frames went by the switch while the inbox was full. */
	if (egress_knows(&port.egress, qpn)) {
		for (int i = 0; i < VNIC_INBOX_FDS; i++)
			close(fds[i]);
		return;
	}
	rc = egress_add(&port.egress, qpn, fds);
	if (rc)
		log_info("frames to qp %#x go by the switch: %s", qpn, strerror(-rc));
	port_unlock();
	expect_frames();
	port_claim();
}
