/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "requests/daemon_requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "adapter/adapter.h"
#include "attach/attach.h"
#include "daemon/adapter_uplink.h"
#include "daemon/introduction.h"
#include "daemon/port_attributes.h"
#include "daemon/reconnect.h"
#include "process/cancellation.h"
#include "process/log.h"

/* Waits until the adapter has a daemon, and returns its NIC for one request; the NIC is not
 * replaced until return_nic(). NULL: the adapter is dead, or has no user. *generation becomes
 * adapter_fork_generation. */
static struct vnic_driver *borrow_nic(uint32_t *generation)
{
	struct vnic_driver *nic;

	if (!adapter_ref(generation))
		return NULL;
	adapter_lock();
	while (adapter.reconnecting)
		lock_wait(&adapter.lock, &adapter.reconnects_ended);
	nic = adapter.dead ? NULL : adapter.nic;
	if (nic)
		adapter.nic_users++;
	adapter_unlock();
	if (!nic)
		adapter_unref(*generation);
	return nic;
}

/*
 * Ends the use of the NIC that borrow_nic() began. `rc`: the result of the request. True: the
 * daemon has ended before it answered, so ask_daemon() repeats the request to the next one. False
 * also if the adapter is dead by then, or in a child that a signal handler has forked during the
 * request, which has another adapter.
 */
static bool return_nic(uint32_t generation, int rc)
{
	bool again = rc == -ECONNRESET || rc == -EPIPE;

	adapter_lock();
	if (generation == adapter_fork_generation) {
		adapter.nic_users--;
		/* The daemon has ended, and the engine thread has not noticed it yet. */
		if (again && adapter_connected())
			adapter_disconnected();
	}
	again = again && generation == adapter_fork_generation && !adapter.dead;
	adapter_unlock();
	adapter_unref(generation);
	return again;
}

/* One request to the daemon of `nic`. Waits for the answer: 0 or a negative errno value;
 * -ECONNRESET or -EPIPE: the daemon has ended. */
typedef int ask_fn(struct vnic_driver *nic, void *question);

/* Calls `ask`, and again with the next daemon as long as the daemon ends before it answers. Returns
 * the result of the last call; -EIO: the adapter is dead, or has no user. */
static int ask_daemon(ask_fn *ask, void *question)
{
	const int cancel = cancellation_disable();
	struct vnic_driver *nic;
	uint32_t generation;
	int rc;

	do {
		nic = borrow_nic(&generation);
		rc = nic ? ask(nic, question) : -EIO;
	} while (nic && return_nic(generation, rc));
	cancellation_restore(cancel);
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

/* Whether the destination is this host. Then sets *hop to its MAC, which is known without the
 * daemon. */
static bool is_this_host(uint8_t sgid_index, const uint8_t dgid[16], struct vnic_next_hop *hop)
{
	const struct vnic_attach_gid *gids = adapter.welcome.port.gids;
	bool here = false;

	adapter_lock();
	if (!adapter.dead && sgid_index < VNIC_ATTACH_GIDS && gids[sgid_index].valid)
		here = port_has_gid(dgid);
	if (here) {
		*hop = (struct vnic_next_hop){.hop_limit = 0};
		memcpy(hop->mac, adapter.welcome.mac, sizeof(hop->mac));
	}
	adapter_unlock();
	return here;
}

int adapter_resolve_next_hop(uint8_t sgid_index, const uint8_t dgid[16], struct vnic_next_hop *hop)
{
	struct next_hop_question question = {sgid_index, dgid, hop};

	return is_this_host(sgid_index, dgid, hop) ? 0 : ask_daemon(ask_next_hop, &question);
}

/* Whether the process needs another block of QPNs. 0: it does; 1: it has free QPNs; -EINVAL: it has
 * the maximum of blocks. */
static int check_lease_needed(void)
{
	int rc = 0;

	adapter_lock();
	if (!leases_full(&adapter.leases))
		rc = 1;
	else if (adapter.leases.n == VNIC_LEASES_MAX)
		rc = -EINVAL;
	adapter_unlock();
	return rc;
}

/* Adds to adapter.leases a block of QPNs that the daemon has leased. 0, or -EIO: this is a child
 * that a signal handler has forked since `generation` was adapter.daemon_generation. */
static int add_block(struct lease_block *block, uint32_t generation)
{
	bool is_own;

	adapter_lock();
	is_own = generation == adapter.daemon_generation;
	if (is_own) {
		leases_add(&adapter.leases, block);
		adapter_accept_uplink();
	}
	adapter_unlock();
	return is_own ? 0 : -EIO;
}

/* Leases another block of QPNs, unless another thread has done so meanwhile. With
 * adapter_lease_lock. 0 or a negative errno value. */
static int add_lease_block(struct vnic_driver *nic)
{
	const uint32_t generation = adapter.daemon_generation;
	struct lease_block *block;
	int rc = check_lease_needed();

	if (rc)
		return rc < 0 ? rc : 0;
	block = calloc(1, sizeof(*block));
	if (!block)
		return -ENOMEM;
	rc = vnic_driver_lease(nic, &block->qpn_first);
	if (!rc)
		rc = add_block(block, generation);
	if (rc) {
		free(block);
		return rc;
	}
	log_info("QPNs %#x to %#x", block->qpn_first, block->qpn_first + VNIC_LEASE_QPNS - 1);
	return 0;
}

static int ask_lease(struct vnic_driver *nic, void *unused)
{
	int rc;

	(void)unused;
	pthread_mutex_lock(&adapter_lease_lock);
	rc = add_lease_block(nic);
	pthread_mutex_unlock(&adapter_lease_lock);
	return rc;
}

int adapter_lease_qpns(void)
{
	int rc = ask_daemon(ask_lease, NULL);

	if (rc)
		log_info("no more queue pairs: %s", strerror(-rc));
	return rc;
}

static int ask_tell(struct vnic_driver *nic, void *question)
{
	struct told_qp *told = question;

	told->daemon_generation = adapter.daemon_generation;
	return told_qp_tell(nic, told);
}

static int ask_tell_end(struct vnic_driver *nic, void *question)
{
	const struct told_qp *told = question;

	/* Nothing to do: the daemon that knew the record has ended. */
	if (told->daemon_generation != adapter.daemon_generation)
		return 0;
	return told_qp_tell_end(nic, told);
}

int adapter_tell_qp(struct told_qp *told, bool exists)
{
	return ask_daemon(exists ? ask_tell : ask_tell_end, told);
}

/* While the daemon does not know the answer: interval of the questions, ns, and their number. */
#define QUERY_PAUSE_NS 20000000
#define QUERIES        250

struct qpn_question {
	const uint8_t *dgid;
	uint32_t qpn;
};

static int ask_query_qpn(struct vnic_driver *nic, void *question)
{
	const struct qpn_question *q = question;

	return vnic_driver_query_qpn(nic, q->dgid, q->qpn);
}

int adapter_query_qpn(const uint8_t dgid[16], uint32_t qpn)
{
	const struct timespec pause = {.tv_nsec = QUERY_PAUSE_NS};
	struct qpn_question question = {dgid, qpn};
	const int cancel = cancellation_disable();
	int rc;

	/* Asks again after -EBUSY (not known yet): both ends of a connection must make the same
	 * choice between HCA and engine. */
	for (int i = 0; (rc = ask_daemon(ask_query_qpn, &question)) == -EBUSY && i < QUERIES; i++)
		nanosleep(&pause, NULL);
	cancellation_restore(cancel);
	return rc;
}

void adapter_await_daemon(void)
{
	static const uint8_t nowhere[16];

	/* The daemon reads messages in their order, so its answer to this question shows that it
	 * has read all earlier messages. */
	adapter_query_qpn(nowhere, 0);
}

static int ask_multicast(struct vnic_driver *nic, void *unused)
{
	(void)unused;
	return vnic_driver_apply_multicast(nic);
}

void adapter_apply_multicast(void)
{
	uint32_t changes;
	bool due;

	adapter_lock();
	changes = adapter.multicast_changes;
	/* A daemon that has ended has no frames to filter; the next one learns the mode when the
	 * process attaches. */
	due = changes != adapter.multicast_applied && adapter_connected();
	adapter_unlock();
	if (!due || ask_daemon(ask_multicast, NULL))
		return;
	adapter_lock();
	if ((int32_t)(changes - adapter.multicast_applied) > 0)
		adapter.multicast_applied = changes;
	adapter_unlock();
}

/* A peer: a queue pair on this host, and the MAC of its device. */
struct peer_question {
	const uint8_t *mac;
	uint32_t qpn;
};

/* Adds the peer's inbox to adapter.tx, and takes over the descriptors, also after an error. With
 * adapter.lock. 0 or a negative errno value; -EIO: as for add_block(). */
static int add_inbox(const struct peer_question *q, const int fds[VNIC_INBOX_FDS],
		     uint32_t generation)
{
	if (generation == adapter.daemon_generation)
		return adapter_take_inbox(q->mac, q->qpn, fds);
	for (int i = 0; i < VNIC_INBOX_FDS; i++)
		close(fds[i]);
	return -EIO;
}

/* Gets the inbox of the process that has the QPN, and adds it to adapter.tx. If the daemon does not
 * give it, forgets which process has the QPN. 0 or a negative errno value. */
static int ask_introduction(struct vnic_driver *nic, void *question)
{
	const uint32_t generation = adapter.daemon_generation;
	const struct peer_question *q = question;
	int fds[VNIC_INBOX_FDS];
	int rc = vnic_driver_introduce(nic, q->mac, q->qpn, fds);

	adapter_lock();
	if (rc)
		tx_forget_qpn(&adapter.tx, q->qpn);
	else
		rc = add_inbox(q, fds, generation);
	adapter_unlock();
	if (!rc)
		adapter_populate_inbox();
	return rc;
}

/* Whether to ask the daemon for the peer's inbox: the adapter lacks it, and the MAC is this host's
 * or may be that of a virtual machine. */
static bool wants_introduction(const struct peer_question *peer)
{
	bool wants;

	adapter_lock();
	wants = adapter.dev && !tx_has_inbox(&adapter.tx, peer->mac, peer->qpn) &&
		(adapter.welcome.port.machines ||
		 !memcmp(peer->mac, adapter.welcome.mac, sizeof(adapter.welcome.mac)));
	adapter_unlock();
	return wants;
}

void adapter_request_inbox(const uint8_t mac[6], uint32_t qpn)
{
	struct peer_question peer = {mac, qpn};
	int rc = wants_introduction(&peer) ? ask_daemon(ask_introduction, &peer) : 0;

	/* Does not log -ENOENT for another MAC than this host's: most such peers are on other
	 * hosts. */
	if (rc && rc != -EIO && (rc != -ENOENT || !memcmp(mac, adapter.welcome.mac, 6)))
		log_info("frames to qp %#x go by the switch: %s", qpn, strerror(-rc));
}
