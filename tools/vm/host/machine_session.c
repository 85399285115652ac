/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vm/host/machine_session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/epoll_readable.h"
#include "common/log.h"

#define RETRY_NS (100 * NS_PER_MS)
/* Pause after a daemon has not answered: each wait for an answer delays the guest's accesses to
 * registers. */
#define RETRY_SILENT_NS (10 * NS_PER_SEC)
/*
 * Longest pause after a refusal. The pause doubles from RETRY_NS up to this time, because a refusal
 * may last, such as that of a user whose quota is used up, and each attempt costs the daemon time.
 */
#define RETRY_REFUSED_NS (60 * NS_PER_SEC)
#define LOOK_NS          NS_PER_SEC /* between looks for the next daemon in a pause */
#define REFUSED_LINES    8          /* log lines about refused QPNs; the first ones tell enough */

/* --- QPNs that this daemon has not leased to the session */

static bool is_unleased(const struct vm_session *s, uint32_t qpn)
{
	return s->leases.by_qpn[VNIC_BLOCK(qpn)]->unleased;
}

/* Logs that the daemon has refused to add a QPN. The switch still finds the machine by its MAC. But
 * urxed introduces no peers of this host to the queue pair, so their messages go in packets. */
static void log_refused(struct vm_session *s, uint32_t qpn, int rc)
{
	if (++s->log_lines > REFUSED_LINES)
		return;
	if (rc == -EEXIST)
		log_line("messages of the machine's QP %#x go in packets: another process of this "
			 "host has a queue pair with the same number",
			 qpn);
	else
		log_line("messages of the machine's QP %#x go in packets: %s", qpn, strerror(-rc));
}

static int add_unleased(struct vm_session *s, uint32_t qpn)
{
	return s->nic ? vnic_driver_add_qpn(s->nic, qpn, 0) : -ENOTCONN;
}

/* Adds all QPNs of the machine that are not leased, and returns how many the daemon has refused;
 * `log`: logs each. */
static uint32_t add_all_unleased(struct vm_session *s, bool log)
{
	uint32_t refused = 0;

	for (uint32_t block = 0; s->leases.unleased && block < VNIC_BLOCKS; block++) {
		const struct lease_block *b = s->leases.by_qpn[block];

		for (uint32_t i = 0; b && b->unleased && i < VNIC_LEASE_QPNS; i++) {
			const int rc = b->qps[i] ? add_unleased(s, b->qpn_first + i) : 0;

			refused += rc != 0;
			if (rc && log)
				log_refused(s, b->qpn_first + i, rc);
		}
	}
	return refused;
}

/* --- Attachment */

void vm_session_detach(struct vm_session *s)
{
	if (!s->nic)
		return;
	epoll_remove(s->epoll_fd, vnic_driver_notice_fd(s->nic));
	epoll_remove(s->epoll_fd, vnic_driver_ctl_fd(s->nic));
	vnic_driver_detach(s->nic);
	s->nic = NULL;
	s->unwatched = false;
}

/* Adds both of the daemon's descriptors to epoll_fd. Returns 0, or an error: adds neither. */
static int watch_daemon(struct vm_session *s)
{
	const int ctl = vnic_driver_ctl_fd(s->nic);
	int rc = epoll_add_readable(s->epoll_fd, ctl);

	if (rc)
		return rc;
	rc = epoll_add_readable(s->epoll_fd, vnic_driver_notice_fd(s->nic));
	if (rc)
		epoll_remove(s->epoll_fd, ctl);
	return rc;
}

/* Without a watch the session stays attached: if it left, the daemon would give its lease to
 * others. It looks at the daemon's messages each RETRY_NS instead. */
static void begin_watch(struct vm_session *s)
{
	int rc = watch_daemon(s);

	s->unwatched = rc;
	if (rc)
		log_line("no events of urxed in %s: %s; looking at its messages each 100 ms",
			 s->run_dir, strerror(-rc));
}

/* Tries again to watch the daemon; until that succeeds, looks for its messages and its end. */
static void watch_again(struct vm_session *s, uint64_t now)
{
	s->retry_at = now + RETRY_NS;
	s->unwatched = watch_daemon(s);
	if (s->unwatched)
		vm_session_event(s);
}

/* Whether the daemon has kept all leases and the MTU. It may count one block more: one that it
 * leased in an answer that this process did not get. */
static bool is_same_host(const struct vm_session *s, const struct vnic_attach_welcome *now)
{
	return !s->leases.n || (now->qpn_first == s->welcome.qpn_first &&
				now->leases >= s->leases.n && now->mtu == s->welcome.mtu);
}

static int attach_session(struct vm_session *s)
{
	const struct vnic_attach_welcome *was = s->leases.n ? &s->welcome : NULL;
	struct vnic_attach_welcome now;
	int rc = vnic_driver_attach_machine(s->run_dir, s->mac, was, &now, &s->nic);

	if (rc)
		return rc;
	rc = is_same_host(s, &now) ? 0 : -ESTALE;
	if (!rc && !was)
		rc = leases_add_new(&s->leases, now.qpn_first);
	if (rc) {
		vm_session_detach(s);
		return rc;
	}
	begin_watch(s);
	s->welcome = now;
	s->attachments++;
	/* A daemon that has started since then knows the leased blocks, not the added QPNs. */
	add_all_unleased(s, !s->demand_deferred);
	/* Peers that have the inbox keep it. The new daemon needs it to introduce further peers. */
	if (s->inbox && vnic_driver_set_inbox(s->nic, s->inbox))
		log_line("the new urxed does not take the machine's inbox: messages to further "
			 "peers go in packets");
	return 0;
}

static bool is_away(int rc)
{
	return rc == -ENOENT || rc == -ECONNREFUSED || rc == -ECONNRESET || rc == -EPIPE ||
	       rc == -ETIMEDOUT || rc == -EBUSY;
}

/* Whether a further attempt would end with the same error. */
static bool is_final(int rc)
{
	return rc == -EPERM || rc == -EPROTO || rc == -ESTALE;
}

static void log_refusal(struct vm_session *s, int rc)
{
	if (rc == s->refusal)
		return;
	s->refusal = rc;
	log_line("urxed in %s gives no queue pair numbers: %s; %surxe show does not show the queue "
		 "pairs of the machine",
		 s->run_dir, strerror(-rc),
		 is_final(rc) ? "" : "until a further attempt succeeds, ");
}

static uint64_t pause_after(struct vm_session *s, int rc)
{
	const uint64_t longer = 2 * s->refused_ns;

	if (!rc || is_away(rc))
		s->refused_ns = 0;
	else if (!longer)
		s->refused_ns = RETRY_NS;
	else
		s->refused_ns = longer < RETRY_REFUSED_NS ? longer : RETRY_REFUSED_NS;
	return rc == -ETIMEDOUT ? RETRY_SILENT_NS : s->refused_ns;
}

static void try_attach(struct vm_session *s, uint64_t now)
{
	const struct daemon_file file = daemon_file_look(s->run_dir);
	int rc = attach_session(s);

	s->pause = (struct daemon_pause){now + pause_after(s, rc), file};
	s->retry_at = now + RETRY_NS;
	if (!rc)
		s->refusal = 0;
	if (!rc || is_away(rc))
		return;
	s->final_detach = is_final(rc);
	log_refusal(s, rc);
}

int vm_session_open(struct vm_session *s, const char *run_dir, const uint8_t mac[6],
		    const struct session_queries *queries)
{
	*s = (struct vm_session){.run_dir = run_dir, .queries = *queries};
	memcpy(s->mac, mac, sizeof(s->mac));
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll_fd < 0)
		return -errno;
	try_attach(s, now_ns());
	return 0;
}

void vm_session_close(struct vm_session *s)
{
	vm_session_detach(s);
	leases_clear(&s->leases);
	if (s->epoll_fd > 0)
		close(s->epoll_fd);
}

/* --- Numbers of a process that this one replaces */

#define DEMAND_NS       (2000 * NS_PER_MS)
#define DEMAND_PAUSE_NS (10 * NS_PER_MS)

void vm_session_demand_later(struct vm_session *s)
{
	s->demand_deferred = true;
}

void vm_session_demand_now(struct vm_session *s, uint64_t now)
{
	s->demand_deferred = false;
	s->demand_at = now;
	s->demand_until = now + DEMAND_NS;
}

/* Adds the QPNs of the replaced process at the daemon. If the daemon refuses some, repeats that
 * until demand_until: urxed may learn of the replaced process's end later than this process. */
static void demand(struct vm_session *s, uint64_t now)
{
	const bool last = now >= s->demand_until;

	if (add_all_unleased(s, last) && !last && s->nic) {
		s->demand_at = now + DEMAND_PAUSE_NS;
		return;
	}
	s->demand_at = 0;
	s->demanded = true;
}

bool vm_session_has_demanded(struct vm_session *s)
{
	const bool demanded = s->demanded;

	s->demanded = false;
	return demanded;
}

static uint64_t next_look(const struct vm_session *s, uint64_t now)
{
	return s->pause.until < now + LOOK_NS ? s->pause.until : now + LOOK_NS;
}

/* Whether neither an attachment nor a watch has to be tried again. */
static bool is_settled(const struct vm_session *s)
{
	return s->nic ? !s->unwatched : s->final_detach;
}

static uint64_t look_for_daemon(struct vm_session *s, uint64_t now)
{
	if (is_settled(s))
		return UINT64_MAX;
	if (now < s->retry_at)
		return s->retry_at;
	if (s->nic)
		watch_again(s, now);
	else if (daemon_pause_lasts(&s->pause, s->run_dir, now))
		s->retry_at = next_look(s, now);
	else
		try_attach(s, now);
	return is_settled(s) ? UINT64_MAX : s->retry_at;
}

uint64_t vm_session_tick(struct vm_session *s, uint64_t now)
{
	const uint64_t next = look_for_daemon(s, now);

	if (s->demand_at && now >= s->demand_at)
		demand(s, now);
	return s->demand_at && s->demand_at < next ? s->demand_at : next;
}

int vm_session_make_inbox(struct vm_session *s, struct vnic_inbox **inbox)
{
	int rc = s->nic ? vnic_driver_make_inbox(s->nic, s->welcome.mtu, inbox) : -ENOTCONN;

	if (!rc)
		s->inbox = *inbox;
	return rc;
}

/* --- Messages of the daemon */

/* Closes the descriptors of an introduction that the process has not asked for. It asks for the
 * peers of its connections itself (machine_peers_request_introduction). */
static void refuse_introduction(struct vm_session *s)
{
	int fds[VNIC_INBOX_FDS];
	uint32_t qpn;

	if (!vnic_driver_introduction(s->nic, &qpn, fds))
		return;
	for (int i = 0; i < VNIC_INBOX_FDS; i++)
		close(fds[i]);
}

static void pass_recording(struct vm_session *s)
{
	int ring;

	if (vnic_driver_record(s->nic, &ring))
		s->queries.record(s->queries.ctx, ring);
}

static bool has_ended(const struct vm_session *s)
{
	char byte;
	ssize_t n = recv(vnic_driver_ctl_fd(s->nic), &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT);

	return n >= 0 || (errno != EAGAIN && errno != EINTR);
}

void vm_session_event(struct vm_session *s)
{
	int question, notice;

	if (!s->nic)
		return;
	notice = vnic_driver_notice_fd(s->nic);
	vnic_driver_notice(s->nic, &s->welcome.port, &question);
	if (vnic_driver_notice_fd(s->nic) != notice)
		epoll_remove(s->epoll_fd, notice);
	if (question >= 0)
		s->queries.state(s->queries.ctx, question);
	refuse_introduction(s);
	pass_recording(s);
	if (has_ended(s))
		vm_session_detach(s);
}

/* --- Numbers of queue pairs */

static int lease_more(struct vm_session *s)
{
	uint32_t qpn_first = 0;
	int rc = s->nic ? 0 : -ENOTCONN;

	if (!rc)
		rc = s->leases.n < VNIC_LEASES_MAX ? vnic_driver_lease(s->nic, &qpn_first)
						   : -ENOSPC;
	return rc ?: leases_add_new(&s->leases, qpn_first);
}

uint32_t vm_session_take_qpn(struct vm_session *s)
{
	uint32_t qpn;

	if (!s->leases.n || (leases_full(&s->leases) && lease_more(s)))
		return 0;
	qpn = leases_find_free(&s->leases);
	leases_assign(&s->leases, qpn, s);
	return qpn;
}

void vm_session_free_qpn(struct vm_session *s, uint32_t qpn)
{
	if (s->nic && is_unleased(s, qpn))
		vnic_driver_remove_qpn(s->nic, qpn);
	leases_assign(&s->leases, qpn, NULL);
}

int vm_session_demand_qpn(struct vm_session *s, uint32_t qpn)
{
	int rc = leases_find(&s->leases, qpn) ? -EADDRINUSE : leases_reserve(&s->leases, qpn);

	if (rc)
		return rc;
	leases_assign(&s->leases, qpn, s);
	if (!is_unleased(s, qpn) || s->demand_deferred)
		return 0;
	rc = add_unleased(s, qpn);
	if (rc)
		log_refused(s, qpn, rc);
	return 0;
}
