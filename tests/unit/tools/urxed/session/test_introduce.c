/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The daemon introduces processes to each other's inboxes, and releases the inboxes of dead
 * processes. This thread is the daemon; other threads and children are its clients.
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lan.h"
#include "server.h"
#include "urxed/privilege/fd_guard.h"

#define T0     1000000000ull
#define NOBODY 65534
#define SKIP   77

struct process {
	struct server_process base; /* first member: callbacks get a pointer to it */
	struct vnic_inbox *inbox;
	/* The QPN that ask_thread asks for, and the descriptors that it gets. */
	uint32_t qpn;
	const uint8_t *mac; /* of the device with the QPN; NULL: the host's */
	int fds[VNIC_INBOX_FDS];
};

static struct {
	struct server server;
	struct process sender, receiver;
	uint64_t now;
} w;

static int attach_without_inbox(struct process *p)
{
	return vnic_driver_attach(w.server.run_dir, &p->base.who, &p->base.driver);
}

static int make_unpublished(struct process *p)
{
	return vnic_driver_make_inbox(p->base.driver, p->base.who.mtu, &p->inbox);
}

static int make_inbox(struct process *p)
{
	int ret = make_unpublished(p);

	return ret ? ret : vnic_inbox_publish(p->inbox);
}

static int attach_unpublished(struct process *p)
{
	int ret = attach_without_inbox(p);

	return ret ? ret : make_unpublished(p);
}

static int attach(struct process *p)
{
	int ret = attach_without_inbox(p);

	return ret ? ret : make_inbox(p);
}

static const uint8_t machine_mac[6] = {0x52, 0x54, 0, 0, 1, 1};

/* As the device process of a virtual machine. */
static int attach_machine(struct process *p)
{
	int ret = vnic_driver_attach_machine(w.server.run_dir, machine_mac, NULL, &p->base.who,
					     &p->base.driver);

	return ret ? ret : make_inbox(p);
}

static void *attach_machine_thread(void *arg)
{
	struct process *p = arg;

	p->base.status = attach_machine(p);
	atomic_store(&p->base.done, true);
	return NULL;
}

static void *attach_thread(void *arg)
{
	struct process *p = arg;

	p->base.status = attach(p);
	atomic_store(&p->base.done, true);
	return NULL;
}

static void *attach_unpublished_thread(void *arg)
{
	struct process *p = arg;

	p->base.status = attach_unpublished(p);
	atomic_store(&p->base.done, true);
	return NULL;
}

static void *attach_without_inbox_thread(void *arg)
{
	struct process *p = arg;

	p->base.status = attach_without_inbox(p);
	atomic_store(&p->base.done, true);
	return NULL;
}

static void *make_inbox_thread(void *arg)
{
	struct process *p = arg;

	p->base.status = make_inbox(p);
	atomic_store(&p->base.done, true);
	return NULL;
}

static void *ask_thread(void *arg)
{
	struct process *p = arg;

	p->base.status = vnic_driver_introduce(p->base.driver, p->mac ? p->mac : p->base.who.mac,
					       p->qpn, p->fds);
	atomic_store(&p->base.done, true);
	return NULL;
}

static void take_events(void)
{
	server_take_events(&w.server, w.now);
	sessions_reap(&w.server.sessions);
}

static void serve(void *(*call)(void *), struct process *p)
{
	server_call(call, &p->base, take_events);
}

/* Before the tests have threads: the helper is forked. */
static int start(void **state)
{
	return fd_guard_start() || lan_start(state);
}

static int setup(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.now = T0;
	server_open(&w.server);
	server_begin(&w.server, T0);
	serve(attach_thread, &w.sender);
	assert_int_equal(w.sender.base.status, 0);
	serve(attach_thread, &w.receiver);
	assert_int_equal(w.receiver.base.status, 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	vnic_driver_abandon(w.sender.base.driver);
	vnic_driver_abandon(w.receiver.base.driver);
	vnic_inbox_destroy(w.sender.inbox);
	vnic_inbox_destroy(w.receiver.inbox);
	server_end(&w.server);
	server_close(&w.server);
	return 0;
}

/* Introduces `from` to `to` by a QPN of `to`; returns the outbox. */
static struct vnic_outbox *introduced(struct process *from, const struct process *to)
{
	struct vnic_outbox *outbox;

	from->qpn = to->base.who.qpn_first + 5;
	serve(ask_thread, from);
	assert_int_equal(from->base.status, 0);
	assert_int_equal(vnic_outbox_open(from->fds, from->base.who.mtu,
					  VNIC_BLOCK(from->base.who.qpn_first), &outbox),
			 0);
	return outbox;
}

static enum vnic_outbox_status send_one(struct vnic_outbox *outbox)
{
	uint8_t data[60] = {0};
	const struct vnic_frame frame = {.data = data, .len = sizeof(data)};
	enum vnic_outbox_status status;

	vnic_outbox_send(outbox, &frame, 1, &status);
	return status;
}

static void kill_client(struct process *p)
{
	vnic_driver_abandon(p->base.driver);
	p->base.driver = NULL;
	take_events();
}

static void introduced_sender_reaches_the_inbox(void **state)
{
	struct vnic_outbox *outbox = introduced(&w.sender, &w.receiver);
	struct vnic_frame frame;

	(void)state;
	assert_int_equal(send_one(outbox), VNIC_OUTBOX_OK);
	assert_int_equal(vnic_inbox_rx(w.receiver.inbox, &frame, 1), 1);
	assert_int_equal(frame.len, 60);
	vnic_outbox_close(outbox);
	/* A process may be introduced to itself. */
	vnic_outbox_close(introduced(&w.sender, &w.sender));
}

static void unknown_qpn_is_refused(void **state)
{
	static const uint32_t qpns[] = {0, 1, 0x7ff000, 0xffffff, UINT32_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(qpns) / sizeof(qpns[0]); i++) {
		w.sender.qpn = qpns[i];
		serve(ask_thread, &w.sender);
		assert_int_equal(w.sender.base.status, -ENOENT);
	}
	kill_client(&w.receiver);
	w.sender.qpn = w.receiver.base.who.qpn_first;
	serve(ask_thread, &w.sender);
	assert_int_equal(w.sender.base.status, -ENOENT);
}

/* Asks until the daemon knows the peer no more; the QPN becomes the number of answers. */
static void *ask_often_thread(void *arg)
{
	struct process *p = arg;
	uint32_t n = 0;

	while (!vnic_driver_introduce(p->base.driver, p->base.who.mac, p->qpn, p->fds)) {
		for (int i = 0; i < VNIC_INBOX_FDS; i++)
			close(p->fds[i]);
		n++;
	}
	p->qpn = n;
	atomic_store(&p->base.done, true);
	return NULL;
}

static uint32_t count_introductions(struct process *p)
{
	p->qpn = w.receiver.base.who.qpn_first;
	serve(ask_often_thread, p);
	return p->qpn;
}

static void too_many_requests_are_refused(void **state)
{
	struct process other = {.qpn = 0};

	(void)state;
	assert_int_equal(count_introductions(&w.sender), SESSION_INTRODUCTIONS);
	assert_int_equal(count_introductions(&w.sender), 0);
	w.now += 3 * SESSION_INTRODUCTION_NS;
	assert_int_equal(count_introductions(&w.sender), 3);
	/* Other processes have limits of their own. */
	serve(attach_thread, &other);
	assert_int_equal(other.base.status, 0);
	vnic_outbox_close(introduced(&other, &w.receiver));
	kill_client(&other);
	vnic_inbox_destroy(other.inbox);
}

/* The queue pairs of a virtual machine have the machine's MAC, those of a program the host's. */
static void machine_is_introduced_by_its_mac(void **state)
{
	static const uint8_t other[6] = {0x52, 0x54, 0, 0, 1, 2};
	struct process machine = {.qpn = 0};

	(void)state;
	serve(attach_machine_thread, &machine);
	assert_int_equal(machine.base.status, 0);
	assert_memory_equal(machine.base.who.mac, w.sender.base.who.mac, 6);
	w.sender.qpn = machine.base.who.qpn_first;
	serve(ask_thread, &w.sender);
	assert_int_equal(w.sender.base.status, -ENOENT);
	w.sender.mac = other;
	serve(ask_thread, &w.sender);
	assert_int_equal(w.sender.base.status, -ENOENT);
	w.sender.mac = machine_mac;
	vnic_outbox_close(introduced(&w.sender, &machine));
	/* The other way round, and a program by the machine's MAC. */
	vnic_outbox_close(introduced(&machine, &w.sender));
	machine.mac = machine_mac;
	serve(ask_thread, &machine);
	assert_int_equal(machine.base.status, -ENOENT);
	kill_client(&machine);
	vnic_inbox_destroy(machine.inbox);
}

static void dead_receiver_closes_its_inbox(void **state)
{
	struct vnic_outbox *outbox = introduced(&w.sender, &w.receiver);

	(void)state;
	kill_client(&w.receiver);
	assert_int_equal(send_one(outbox), VNIC_OUTBOX_CLOSED);
	vnic_outbox_close(outbox);
}

/* Locks the inbox in the name of `process`; the lock is the inbox's first word. */
static void lock_inbox(const struct process *of, const struct process *process)
{
	int fds[VNIC_INBOX_FDS];
	uint32_t *lock;

	vnic_inbox_fds(of->inbox, fds);
	lock = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fds[VNIC_INBOX_MEMORY], 0);
	assert_ptr_not_equal(lock, MAP_FAILED);
	*lock = VNIC_BLOCK(process->base.who.qpn_first);
	munmap(lock, 4096);
}

static void lock_of_dead_sender_is_freed(void **state)
{
	struct vnic_outbox *outbox = introduced(&w.receiver, &w.receiver);

	(void)state;
	lock_inbox(&w.receiver, &w.sender);
	assert_int_equal(send_one(outbox), VNIC_OUTBOX_BUSY);
	kill_client(&w.sender);
	assert_int_equal(send_one(outbox), VNIC_OUTBOX_OK);
	vnic_outbox_close(outbox);
}

/* A frame through the switch introduces the sender without a request. */
static void first_frame_by_the_switch_introduces(void **state)
{
	struct switch_port *from = lease_owner(&w.server.sw.leases, w.sender.base.who.qpn_first);
	struct switch_port *to = lease_owner(&w.server.sw.leases, w.receiver.base.who.qpn_first);
	uint32_t qpn = w.receiver.base.who.qpn_first + 3, met;
	int fds[VNIC_INBOX_FDS], question;
	struct vnic_attach_port port;
	struct vnic_outbox *outbox;

	(void)state;
	assert_false(vnic_driver_introduction(w.sender.base.driver, &met, fds));
	assert_int_equal(session_introduce(from, to, qpn), 0);
	switch_introduce(&w.server.sw, from, to, qpn + 1);
	vnic_driver_notice(w.sender.base.driver, &port, &question);
	assert_int_equal(question, -1);
	assert_true(vnic_driver_introduction(w.sender.base.driver, &met, fds));
	assert_int_equal(met, qpn);
	assert_false(vnic_driver_introduction(w.sender.base.driver, &met, fds));
	assert_int_equal(vnic_outbox_open(fds, w.sender.base.who.mtu, 1, &outbox), 0);
	assert_int_equal(send_one(outbox), VNIC_OUTBOX_OK);
	vnic_outbox_close(outbox);
	/* The driver closes an introduction that is not taken. */
	vnic_driver_notice(w.sender.base.driver, &port, &question);
}

/*
 * Descriptors in unread messages count against the daemon's limit, which a process that reads
 * nothing must not use up. The sender is introduced once it reads.
 */
static void introductions_wait_for_a_process_that_reads(void **state)
{
	struct switch_port *from = lease_owner(&w.server.sw.leases, w.sender.base.who.qpn_first);
	struct switch_port *to = lease_owner(&w.server.sw.leases, w.receiver.base.who.qpn_first);
	uint32_t qpn = w.receiver.base.who.qpn_first, n = 0, met;
	int fds[VNIC_INBOX_FDS], question;
	struct vnic_attach_port port;

	(void)state;
	while (!session_introduce(from, to, qpn))
		assert_true(++n < 10);
	assert_int_equal(session_introduce(from, to, qpn), -EAGAIN);
	vnic_driver_notice(w.sender.base.driver, &port, &question);
	assert_true(vnic_driver_introduction(w.sender.base.driver, &met, fds));
	for (int i = 0; i < VNIC_INBOX_FDS; i++)
		close(fds[i]);
	assert_int_equal(session_introduce(from, to, qpn), 0);
}

/* --- Introductions that fail. */

static uint32_t looks_at_queues, sent;
static int send_error, namespace_error;

int __real_namespace_query(void *ctx, pid_t a, pid_t b);
int __wrap_namespace_query(void *ctx, pid_t a, pid_t b);

int __wrap_namespace_query(void *ctx, pid_t a, pid_t b)
{
	return namespace_error ? namespace_error : __real_namespace_query(ctx, a, b);
}

int __real_ioctl(int fd, unsigned long request, void *arg);
int __wrap_ioctl(int fd, unsigned long request, void *arg);
int __real_vnic_message_send(int fd, const void *message, uint32_t len, const int *fds,
			     uint32_t fd_count);
int __wrap_vnic_message_send(int fd, const void *message, uint32_t len, const int *fds,
			     uint32_t fd_count);

int __wrap_ioctl(int fd, unsigned long request, void *arg)
{
	looks_at_queues++;
	return __real_ioctl(fd, request, arg);
}

int __wrap_vnic_message_send(int fd, const void *message, uint32_t len, const int *fds,
			     uint32_t fd_count)
{
	sent++;
	return send_error ? send_error : __real_vnic_message_send(fd, message, len, fds, fd_count);
}

static struct switch_port *port_of(const struct process *p)
{
	return lease_owner(&w.server.sw.leases, p->base.who.qpn_first);
}

/* A frame of the sender to a QPN of `to` passes the switch. */
static void pass_frame(const struct process *to)
{
	switch_introduce(&w.server.sw, port_of(&w.sender), port_of(to), to->base.who.qpn_first);
}

/* Whether the sender has been introduced to a process since the last call. */
static bool got_introduction(void)
{
	int fds[VNIC_INBOX_FDS], question;
	struct vnic_attach_port port;
	uint32_t met;

	vnic_driver_notice(w.sender.base.driver, &port, &question);
	if (!vnic_driver_introduction(w.sender.base.driver, &met, fds))
		return false;
	for (int i = 0; i < VNIC_INBOX_FDS; i++)
		close(fds[i]);
	return true;
}

/* The kernel had no memory for the message, for instance. */
static void introduction_that_was_not_sent_is_repeated(void **state)
{
	(void)state;
	w.server.sw.introduce = session_introduce;
	w.server.sw.now = T0;
	send_error = -ENOMEM;
	sent = 0;
	for (int i = 0; i < 3; i++)
		pass_frame(&w.receiver);
	send_error = 0;
	assert_int_equal(sent, 1);
	assert_false(got_introduction());
	w.server.sw.now += 1000000000;
	for (int i = 0; i < 3; i++)
		pass_frame(&w.receiver);
	assert_int_equal(sent, 2);
	assert_true(got_introduction());
}

/* The helper that compares user namespaces gets no processor, for instance. */
static void introduction_waits_for_the_comparison_of_users(void **state)
{
	(void)state;
	w.server.sw.introduce = session_introduce;
	w.server.sw.now = T0;
	namespace_error = -EBUSY;
	pass_frame(&w.receiver);
	namespace_error = 0;
	assert_false(got_introduction());
	w.server.sw.now += 1000000000;
	pass_frame(&w.receiver);
	assert_true(got_introduction());
}

/* The daemon has not checked the receiver's inbox yet, for instance. */
static void introduction_waits_for_the_inbox(void **state)
{
	struct process third = {0};

	(void)state;
	w.server.sw.introduce = session_introduce;
	serve(attach_without_inbox_thread, &third);
	assert_int_equal(third.base.status, 0);
	looks_at_queues = 0;
	for (int i = 0; i < 3; i++)
		pass_frame(&third);
	/* No frame costs the daemon a system call. */
	assert_int_equal(looks_at_queues, 0);
	assert_false(got_introduction());
	serve(make_inbox_thread, &third);
	assert_int_equal(third.base.status, 0);
	pass_frame(&third);
	assert_true(got_introduction());
	kill_client(&third);
	vnic_inbox_destroy(third.inbox);
}

/* Asks without reading the answer. */
static void ask_only(struct process *p)
{
	struct vnic_attach_introduce request = {.type = VNIC_ATTACH_INTRODUCE,
						.qpn = p->base.who.qpn_first};

	memcpy(request.mac, p->base.who.mac, sizeof(request.mac));
	assert_int_equal(send(vnic_driver_ctl_fd(p->base.driver), &request, sizeof(request), 0),
			 sizeof(request));
	take_events();
}

static void requests_must_not_overlap(void **state)
{
	(void)state;
	ask_only(&w.sender);
	assert_int_equal(w.server.sessions.n, 2);
	ask_only(&w.sender);
	assert_int_equal(w.server.sessions.n, 1);
}

/* The holder died while no daemon ran, so no lease has its process number. */
static void lock_of_sender_dead_before_restart_is_freed(void **state)
{
	struct vnic_outbox *outbox = introduced(&w.receiver, &w.receiver);
	const struct process dead = {.base.who.qpn_first = 0x777000};

	(void)state;
	lock_inbox(&w.receiver, &dead);
	assert_int_equal(send_one(outbox), VNIC_OUTBOX_BUSY);
	sessions_tick(&w.server.sessions, T0 + SESSION_CLAIM_NS);
	assert_int_equal(send_one(outbox), VNIC_OUTBOX_OK);
	/* Also later: the receiver's next message frees the lock. */
	lock_inbox(&w.receiver, &dead);
	vnic_outbox_close(introduced(&w.receiver, &w.receiver));
	assert_int_equal(send_one(outbox), VNIC_OUTBOX_OK);
	vnic_outbox_close(outbox);
}

static void living_sender_keeps_the_lock(void **state)
{
	struct vnic_outbox *outbox = introduced(&w.receiver, &w.receiver);
	struct process third = {0};

	(void)state;
	serve(attach_thread, &third);
	assert_int_equal(third.base.status, 0);
	lock_inbox(&w.receiver, &w.sender);
	kill_client(&third);
	assert_int_equal(send_one(outbox), VNIC_OUTBOX_BUSY);
	vnic_inbox_destroy(third.inbox);
	vnic_outbox_close(outbox);
}

/* A daemon that stops does not close inboxes: a later daemon may take over. */
static void inboxes_work_after_the_daemon_stops(void **state)
{
	struct vnic_outbox *outbox = introduced(&w.sender, &w.receiver);

	(void)state;
	sessions_close_all(&w.server.sessions);
	assert_int_equal(w.server.sessions.n, 0);
	assert_int_equal(send_one(outbox), VNIC_OUTBOX_OK);
	vnic_outbox_close(outbox);
}

static void *claim_thread(void *arg)
{
	struct process *p = arg;
	const struct vnic_attach_welcome was = p->base.who;

	p->base.status =
		vnic_driver_claim(w.server.run_dir, &was, NULL, &p->base.who, &p->base.driver);
	if (!p->base.status)
		p->base.status = vnic_driver_set_inbox(p->base.driver, p->inbox);
	atomic_store(&p->base.done, true);
	return NULL;
}

/* The next daemon begins, and the receiver claims its lease. */
static void replace_daemon(void)
{
	server_end(&w.server);
	server_begin(&w.server, T0);
	vnic_driver_abandon(w.receiver.base.driver);
	serve(claim_thread, &w.receiver);
	assert_int_equal(w.receiver.base.status, 0);
}

/* The next daemon introduces further senders to the same inbox. */
static void inbox_goes_to_the_next_daemon(void **state)
{
	struct vnic_outbox *before = introduced(&w.sender, &w.receiver), *after;
	struct vnic_frame frame;

	(void)state;
	replace_daemon();
	vnic_driver_abandon(w.sender.base.driver);
	serve(claim_thread, &w.sender);
	assert_int_equal(w.sender.base.status, 0);
	after = introduced(&w.sender, &w.receiver);
	assert_int_equal(send_one(before), VNIC_OUTBOX_OK);
	assert_int_equal(send_one(after), VNIC_OUTBOX_OK);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(vnic_inbox_rx(w.receiver.inbox, &frame, 1), 1);
		vnic_inbox_rx_release(w.receiver.inbox, 1);
	}
	vnic_outbox_close(before);
	vnic_outbox_close(after);
}

/* A process that is stopped while the daemon is replaced claims nothing, and may go on later. */
static void living_sender_without_claim_keeps_the_lock(void **state)
{
	struct vnic_outbox *outbox = introduced(&w.receiver, &w.receiver);

	(void)state;
	replace_daemon();
	lock_inbox(&w.receiver, &w.sender);
	sessions_tick(&w.server.sessions, T0 + SESSION_CLAIM_NS);
	assert_int_equal(send_one(outbox), VNIC_OUTBOX_BUSY);
	/* Also later, with the receiver's next message. */
	vnic_outbox_close(introduced(&w.receiver, &w.receiver));
	assert_int_equal(send_one(outbox), VNIC_OUTBOX_BUSY);
	vnic_outbox_close(outbox);
}

/* Before vnic_inbox_publish another process could still map the published memory for writing. */
static void unpublished_inbox_is_not_passed_on(void **state)
{
	struct process third = {0};

	(void)state;
	serve(attach_unpublished_thread, &third);
	assert_int_equal(third.base.status, 0);
	w.sender.qpn = third.base.who.qpn_first;
	serve(ask_thread, &w.sender);
	assert_int_equal(w.sender.base.status, -ENOENT);
	assert_int_equal(vnic_inbox_publish(third.inbox), 0);
	vnic_outbox_close(introduced(&w.sender, &third));
	kill_client(&third);
	vnic_inbox_destroy(third.inbox);
}

static struct vnic_server_client *conn_of(const struct process *p)
{
	struct session *c;

	for (c = w.server.sessions.list;
	     vnic_server_process(c->conn) != VNIC_BLOCK(p->base.who.qpn_first);)
		c = c->next;
	return c->conn;
}

static void daemon_forbids_and_allows_bypass(void **state)
{
	struct vnic_server_client *conn = conn_of(&w.sender);

	(void)state;
	assert_true(vnic_driver_bypass_allowed(w.sender.base.driver));
	vnic_server_allow_bypass(conn, false);
	assert_false(vnic_driver_bypass_allowed(w.sender.base.driver));
	assert_true(vnic_driver_bypass_allowed(w.receiver.base.driver));
	vnic_server_allow_bypass(conn, true);
	assert_true(vnic_driver_bypass_allowed(w.sender.base.driver));
}

/* --- Strangers. */

static int other_user(void)
{
	return setresuid(NOBODY, NOBODY, NOBODY);
}

static int other_namespace(void)
{
	return unshare(CLONE_NEWUSER);
}

/* A child that `become` has changed asks for the inbox of a process, and is refused. */
static void check_stranger(int (*become)(void), const struct process *of, const uint8_t mac[6])
{
	char path[64];
	int status;
	pid_t pid;

	/* Lets the child connect, as members of --group may. */
	snprintf(path, sizeof(path), "%s/" VNIC_SOCKET_NAME, w.server.run_dir);
	assert_int_equal(chmod(w.server.run_dir, 0755) | chmod(path, 0666), 0);
	pid = fork();
	if (!pid) {
		struct process p = {0};

		if (become())
			_exit(SKIP);
		if (attach(&p))
			_exit(1);
		_exit(-vnic_driver_introduce(p.base.driver, mac, of->base.who.qpn_first, p.fds));
	}
	while (waitpid(pid, &status, WNOHANG) == 0) {
		take_events();
		usleep(100);
	}
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == SKIP)
		skip();
	assert_int_equal(WEXITSTATUS(status), EPERM);
}

static void another_user_is_refused(void **state)
{
	(void)state;
	check_stranger(other_user, &w.receiver, w.receiver.base.who.mac);
}

static void another_user_never_gets_a_machine(void **state)
{
	struct process machine = {.qpn = 0};

	(void)state;
	serve(attach_machine_thread, &machine);
	assert_int_equal(machine.base.status, 0);
	check_stranger(other_user, &machine, machine_mac);
	kill_client(&machine);
	vnic_inbox_destroy(machine.inbox);
}

static void another_namespace_is_refused(void **state)
{
	(void)state;
	check_stranger(other_namespace, &w.receiver, w.receiver.base.who.mac);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(introduced_sender_reaches_the_inbox, setup,
						teardown),
		cmocka_unit_test_setup_teardown(unknown_qpn_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(too_many_requests_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(machine_is_introduced_by_its_mac, setup, teardown),
		cmocka_unit_test_setup_teardown(dead_receiver_closes_its_inbox, setup, teardown),
		cmocka_unit_test_setup_teardown(lock_of_dead_sender_is_freed, setup, teardown),
		cmocka_unit_test_setup_teardown(first_frame_by_the_switch_introduces, setup,
						teardown),
		cmocka_unit_test_setup_teardown(introductions_wait_for_a_process_that_reads, setup,
						teardown),
		cmocka_unit_test_setup_teardown(introduction_that_was_not_sent_is_repeated, setup,
						teardown),
		cmocka_unit_test_setup_teardown(introduction_waits_for_the_comparison_of_users,
						setup, teardown),
		cmocka_unit_test_setup_teardown(introduction_waits_for_the_inbox, setup, teardown),
		cmocka_unit_test_setup_teardown(requests_must_not_overlap, setup, teardown),
		cmocka_unit_test_setup_teardown(lock_of_sender_dead_before_restart_is_freed, setup,
						teardown),
		cmocka_unit_test_setup_teardown(living_sender_keeps_the_lock, setup, teardown),
		cmocka_unit_test_setup_teardown(living_sender_without_claim_keeps_the_lock, setup,
						teardown),
		cmocka_unit_test_setup_teardown(inboxes_work_after_the_daemon_stops, setup,
						teardown),
		cmocka_unit_test_setup_teardown(inbox_goes_to_the_next_daemon, setup, teardown),
		cmocka_unit_test_setup_teardown(unpublished_inbox_is_not_passed_on, setup,
						teardown),
		cmocka_unit_test_setup_teardown(daemon_forbids_and_allows_bypass, setup, teardown),
		cmocka_unit_test_setup_teardown(another_user_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(another_user_never_gets_a_machine, setup, teardown),
		cmocka_unit_test_setup_teardown(another_namespace_is_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
