/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The transport to urxed: a socket for rare requests, shared memory for frames. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach_socket.h"
#include "driver_private.h"
#include "message.h"
#include "place_fd.h"
#include "shared.h"

struct shm {
	struct vnic_transport base;
	/*
	 * The queue numbers by which threads take turns at the socket, in the order of their calls.
	 * Threads sleep on `served`. No mutex or condition: leave_requests() ends the waits of a
	 * forked child. Rank 5 of docs/locking.md.
	 */
	_Atomic uint32_t arrived, served;
	_Atomic bool left; /* leave_requests() was called */
	pid_t owner;       /* the process that attached */
	int socket;
	int doorbell;
	int interrupt;
	void *bars;
	void *memory;
	uint64_t memory_size;
	int notice;
	int spare;    /* its number stays free for the driver at the limit of descriptors */
	uint16_t mtu; /* the NIC's */
	/* The last introduction that came as a notice; fds[0] is -1 if there is none. */
	uint32_t introduced_qpn;
	int introduced_fds[VNIC_INBOX_FDS];
	bool record_asked; /* a NOTICE_RECORD has come, and shm_record() has not returned it yet */
	int record_fd;     /* its ring; -1: it ends the recording */
};

static struct shm *to_shm(struct vnic_transport *transport)
{
	return (struct shm *)transport;
}

/* Descriptors that come with an answer. */
struct passed {
	uint32_t wanted;              /* number to receive; afterwards the number received */
	int fds[VNIC_UPLINK_SOCKETS]; /* the most descriptors of an answer */
};

/* Whether this is a forked child (perhaps forked by a signal handler): the connection is its
 * parent's. */
static bool in_forked_child(const struct shm *shm)
{
	return shm->owner != getpid();
}

/* Sends `len` bytes of *message, and receives the answer into *message, with up to *fd_count
 * descriptors. Returns as vnic_message_recv; -EIO: this is a forked child. */
static int send_and_receive(const struct shm *shm, union vnic_message *message, uint32_t len,
			    int *fds, uint32_t *fd_count)
{
	int ret =
		in_forked_child(shm) ? -EIO : vnic_message_send(shm->socket, message, len, NULL, 0);

	if (!ret)
		return vnic_message_recv(shm->socket, message, fds, fd_count);
	*fd_count = 0;
	return ret;
}

/*
 * Sends a request and receives its answer. A failure ends the connection, because a late answer
 * must not be taken for the next request's. The connection goes on after -EMFILE (the answer has
 * come, without its descriptors) and in a forked child (-EIO), whose parent has it.
 */
static int exchange_messages(struct shm *shm, union vnic_message *message, uint32_t len,
			     struct passed *passed)
{
	uint32_t type = message->type, fd_count = passed->wanted;
	int ret = send_and_receive(shm, message, len, passed->fds, &fd_count);

	passed->wanted = 0;
	if (ret == (int)len && message->type == type) {
		passed->wanted = fd_count;
		return 0;
	}
	vnic_close_fds(passed->fds, fd_count);
	if (in_forked_child(shm))
		return -EIO;
	if (ret == -EMFILE)
		return ret;
	shutdown(shm->socket, SHUT_RDWR);
	if (ret == 0)
		return -ECONNRESET;
	if (ret == -EAGAIN)
		return -ETIMEDOUT;
	return ret < 0 ? ret : -EPROTO;
}

/* Waits for this thread's turn at the socket. With a plain mutex, a thread that sends requests
 * without end could starve the others. */
static void take_turn(struct shm *shm)
{
	const uint32_t turn = atomic_fetch_add(&shm->arrived, 1);
	const int saved = errno; /* the program's, which the wait must not change */
	uint32_t served;

	while ((served = atomic_load(&shm->served)) != turn && !atomic_load(&shm->left))
		syscall(SYS_futex, &shm->served, FUTEX_WAIT_PRIVATE, served, NULL);
	errno = saved;
}

static void end_turn(struct shm *shm)
{
	atomic_fetch_add(&shm->served, 1);
	syscall(SYS_futex, &shm->served, FUTEX_WAKE_PRIVATE, INT_MAX);
}

static int send_request_with_fds(struct shm *shm, union vnic_message *message, uint32_t len,
				 struct passed *passed)
{
	int ret;

	take_turn(shm);
	ret = exchange_messages(shm, message, len, passed);
	end_turn(shm);
	return ret;
}

static int send_request(struct shm *shm, union vnic_message *message, uint32_t len)
{
	struct passed none = {0};

	return send_request_with_fds(shm, message, len, &none);
}

static int shm_memory(struct vnic_transport *transport, uint64_t size, void **memory)
{
	struct shm *shm = to_shm(transport);
	union vnic_message message = {.memory = {.type = VNIC_ATTACH_MEMORY, .size = size}};
	struct passed passed = {.wanted = 1};
	int ret = send_request_with_fds(shm, &message, sizeof(message.memory), &passed);

	if (!ret)
		ret = message.memory.status;
	if (!ret)
		ret = passed.wanted == 1 ? vnic_memory_map(passed.fds[0], size, &shm->memory)
					 : -EPROTO;
	if (ret) {
		vnic_close_fds(passed.fds, passed.wanted);
		return ret;
	}
	shm->spare = passed.fds[0];
	shm->memory_size = size;
	*memory = shm->memory;
	return 0;
}

static int access_register(struct shm *shm, bool write, uint32_t offset, uint32_t *value)
{
	union vnic_message message = {.reg = {
					      .type = VNIC_ATTACH_REG,
					      .bar = 1,
					      .offset = offset,
					      .write = write,
					      .value = *value,
				      }};
	int ret = send_request(shm, &message, sizeof(message.reg));

	if (ret)
		return ret;
	*value = message.reg.value;
	return message.reg.status;
}

static int shm_reg_write(struct vnic_transport *transport, uint32_t offset, uint32_t value)
{
	return access_register(to_shm(transport), true, offset, &value);
}

static int shm_reg_read(struct vnic_transport *transport, uint32_t offset, uint32_t *value)
{
	*value = 0;
	return access_register(to_shm(transport), false, offset, value);
}

static void shm_kick(struct vnic_transport *transport)
{
	struct shm *shm = to_shm(transport);
	uint32_t *asleep = vnic_reg(shm->base.bar0, VNIC_REG_ASLEEP);
	int cancel;

	/*
	 * The descriptors must be visible before the device's sleep is read; see
	 * vnic_device_set_asleep.
	 */
	vnic_fence();
	/* One write wakes the device, however many bursts follow until it runs. */
	if (!vnic_load(asleep) || !vnic_exchange(asleep, 0))
		return;
	/* The write is a cancellation point: a thread that was cancelled there would end with locks
	 * of its process held. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	eventfd_write(shm->doorbell, 1);
	pthread_setcancelstate(cancel, NULL);
}

static int shm_resolve(struct vnic_transport *transport, uint8_t sgid_index, const uint8_t dgid[16],
		       struct vnic_next_hop *hop)
{
	union vnic_message message = {
		.resolve = {.type = VNIC_ATTACH_RESOLVE, .sgid_index = sgid_index}};
	int ret;

	memcpy(message.resolve.dgid, dgid, sizeof(message.resolve.dgid));
	ret = send_request(to_shm(transport), &message, sizeof(message.resolve));
	if (!ret)
		ret = message.resolve.status;
	if (!ret)
		*hop = message.resolve.hop;
	return ret;
}

static bool port_valid(const struct shm *shm, const struct vnic_attach_port *p)
{
	return p->link_mtu >= VMXNET3_MIN_MTU && p->link_mtu <= shm->mtu &&
	       memchr(p->hca.name, '\0', sizeof(p->hca.name)) && !p->hca.name[0] == !p->hca.port;
}

static int shm_remote(struct vnic_transport *transport, bool connected, uint32_t local_qpn,
		      const uint8_t dgid[16], uint32_t qpn)
{
	union vnic_message message = {
		.remote = {.type = connected ? VNIC_ATTACH_REGISTER : VNIC_ATTACH_UNREGISTER,
			   .local_qpn = local_qpn,
			   .qpn = qpn}};
	int ret;

	memcpy(message.remote.dgid, dgid, sizeof(message.remote.dgid));
	ret = send_request(to_shm(transport), &message, sizeof(message.remote));
	return ret ? ret : message.remote.status;
}

static int shm_qpn(struct vnic_transport *transport, const struct vnic_attach_qpn *request)
{
	union vnic_message message = {.qpn = *request};
	int ret = send_request(to_shm(transport), &message, sizeof(message.qpn));

	return ret ? ret : message.qpn.status;
}

/* Waits for no turn at the socket: QPN_SET has no answer that could be taken for another one. */
static int shm_set_qpn(struct vnic_transport *transport, const struct vnic_attach_qpn *message)
{
	const struct shm *shm = to_shm(transport);

	return in_forked_child(shm) ? -EIO
				    : vnic_message_try_send(shm->socket, message, sizeof(*message));
}

static bool is_lease(uint32_t qpn_first)
{
	return qpn_first && qpn_first < 1u << 24 && qpn_first % VNIC_LEASE_QPNS == 0;
}

static int shm_lease(struct vnic_transport *transport, uint32_t *qpn_first)
{
	const uint32_t demanded = *qpn_first;
	union vnic_message message = {.lease = {.type = VNIC_ATTACH_LEASE, .qpn_first = demanded}};
	int ret = send_request(to_shm(transport), &message, sizeof(message.lease));

	if (!ret)
		ret = message.lease.status;
	if (!ret && (!is_lease(message.lease.qpn_first) ||
		     (demanded && message.lease.qpn_first != demanded)))
		ret = -EPROTO;
	if (!ret)
		*qpn_first = message.lease.qpn_first;
	return ret;
}

static int shm_uplink(struct vnic_transport *transport, struct vnic_attach_uplink *answer,
		      int fds[VNIC_UPLINK_SOCKETS])
{
	union vnic_message message = {
		.uplink = {.type = VNIC_ATTACH_UPLINK, .status = answer->status}};
	struct passed passed = {.wanted = VNIC_UPLINK_SOCKETS};
	int ret =
		send_request_with_fds(to_shm(transport), &message, sizeof(message.uplink), &passed);

	if (!ret)
		ret = message.uplink.status;
	*answer = message.uplink;
	if (!ret && passed.wanted && passed.wanted == answer->sockets) {
		memcpy(fds, passed.fds, passed.wanted * sizeof(fds[0]));
		return (int)passed.wanted;
	}
	vnic_close_fds(passed.fds, passed.wanted);
	return ret < 0 ? ret : -EPROTO;
}

static bool is_port(const struct shm *shm, const union vnic_message *message, int len)
{
	return len == (int)sizeof(message->notice) && message->type == VNIC_NOTICE_PORT &&
	       port_valid(shm, &message->notice.port);
}

static bool is_question(const union vnic_message *message, int len, uint32_t fd_count)
{
	return len == (int)sizeof(message->question) && message->type == VNIC_NOTICE_STATE_QUERY &&
	       fd_count == 1;
}

static bool is_introduction(const union vnic_message *message, int len, uint32_t fd_count)
{
	return len == (int)sizeof(message->introduction) && message->type == VNIC_NOTICE_INBOX &&
	       fd_count == VNIC_INBOX_FDS;
}

static bool is_record(const union vnic_message *message, int len, uint32_t fd_count)
{
	return len == (int)sizeof(message->record) && message->type == VNIC_NOTICE_RECORD &&
	       fd_count == !!message->record.on;
}

static void store_record(struct shm *shm, int fd)
{
	if (shm->record_fd >= 0)
		close(shm->record_fd);
	shm->record_fd = fd;
	shm->record_asked = true;
}

static bool shm_record(struct vnic_transport *transport, int *ring)
{
	struct shm *shm = to_shm(transport);

	if (!shm->record_asked)
		return false;
	*ring = shm->record_fd;
	shm->record_fd = -1;
	shm->record_asked = false;
	return true;
}

static void store_introduction(struct shm *shm, uint32_t qpn, const int fds[VNIC_INBOX_FDS])
{
	vnic_close_fds(shm->introduced_fds, VNIC_INBOX_FDS);
	shm->introduced_qpn = qpn;
	memcpy(shm->introduced_fds, fds, sizeof(shm->introduced_fds));
}

static bool shm_introduction(struct vnic_transport *transport, uint32_t *qpn,
			     int fds[VNIC_INBOX_FDS])
{
	struct shm *shm = to_shm(transport);

	if (shm->introduced_fds[0] < 0)
		return false;
	*qpn = shm->introduced_qpn;
	memcpy(fds, shm->introduced_fds, sizeof(shm->introduced_fds));
	memset(shm->introduced_fds, -1, sizeof(shm->introduced_fds));
	return true;
}

/*
 * Reads notices until none is left, or up to a question, an introduction or a request to record.
 * True: *port is new. Of several states of the port the last one counts; malformed messages are
 * skipped.
 */
static bool shm_notice(struct vnic_transport *transport, struct vnic_attach_port *port,
		       int *question)
{
	struct shm *shm = to_shm(transport);
	union vnic_message message;
	bool found = false;
	int len;

	*question = -1;
	do {
		uint32_t fd_count = VNIC_INBOX_FDS;
		int fds[VNIC_INBOX_FDS];

		len = vnic_message_recv(shm->notice, &message, fds, &fd_count);
		if (is_question(&message, len, fd_count)) {
			*question = fds[0];
			return found;
		}
		if (is_introduction(&message, len, fd_count)) {
			store_introduction(shm, message.introduction.qpn, fds);
			return found;
		}
		if (is_record(&message, len, fd_count)) {
			store_record(shm, fd_count ? fds[0] : -1);
			return found;
		}
		vnic_close_fds(fds, fd_count);
		if (is_port(shm, &message, len)) {
			*port = message.notice.port;
			found = true;
		}
	} while (len > 0 || len == -EPROTO || len == -EMFILE);
	/*
	 * The daemon has closed its end, and the socket would stay readable for ever; the control
	 * socket reports the daemon's end.
	 */
	if (len != -EAGAIN)
		transport->notice_fd = -1;
	return found;
}

/* Sends INBOX. 0: fds has the `wanted` descriptors of the answer; -EPROTO: other ones came; or the
 * answer's status. */
static int request_inbox(struct shm *shm, bool exists, uint32_t wanted, int fds[VNIC_INBOX_FDS])
{
	union vnic_message message = {.inbox = {.type = VNIC_ATTACH_INBOX, .exists = exists}};
	struct passed passed = {.wanted = wanted};
	int ret = send_request_with_fds(shm, &message, sizeof(message.inbox), &passed);

	if (!ret)
		ret = message.inbox.status;
	if (!ret && passed.wanted == wanted) {
		memcpy(fds, passed.fds, wanted * sizeof(fds[0]));
		return 0;
	}
	vnic_close_fds(passed.fds, passed.wanted);
	return ret ? ret : -EPROTO;
}

static int shm_make_inbox(struct vnic_transport *transport, int fds[VNIC_INBOX_FDS])
{
	return request_inbox(to_shm(transport), false, VNIC_INBOX_FDS, fds);
}

/* Sends the descriptors to the checking process; returns the status that it answers. */
static int send_inbox(int checker, const int fds[VNIC_INBOX_FDS])
{
	union vnic_message message = {.inbox = {.type = VNIC_ATTACH_INBOX, .exists = 1}};
	uint32_t fd_count = 0;
	int ret = vnic_message_send(checker, &message, sizeof(message.inbox), fds, VNIC_INBOX_FDS);

	if (!ret)
		ret = vnic_message_recv(checker, &message, NULL, &fd_count);
	if (ret == (int)sizeof(message.inbox))
		return message.inbox.status;
	return ret < 0 ? ret : -ECONNRESET;
}

static void release_spare(struct shm *shm)
{
	vnic_close_fds(&shm->spare, 1);
	shm->spare = -1;
}

static void keep_spare(struct shm *shm)
{
	shm->spare = vnic_place_fd(fcntl(shm->doorbell, F_DUPFD_CLOEXEC, 0));
}

static int shm_inbox(struct vnic_transport *transport, const int fds[VNIC_INBOX_FDS])
{
	struct shm *shm = to_shm(transport);
	int checker[VNIC_INBOX_FDS];
	int ret;

	release_spare(shm);
	ret = request_inbox(shm, true, 1, checker);
	if (ret) {
		keep_spare(shm);
		return ret;
	}
	ret = vnic_socket_limit_wait(checker[0], VNIC_ANSWER_SECONDS);
	if (!ret)
		ret = send_inbox(checker[0], fds);
	/* Closes the socket and lets its number refer to the doorbell: the number stays in use. */
	shm->spare = dup3(shm->doorbell, checker[0], O_CLOEXEC);
	if (shm->spare < 0)
		vnic_close_fds(checker, 1);
	return ret;
}

static int shm_introduce(struct vnic_transport *transport, const uint8_t mac[6], uint32_t qpn,
			 int fds[VNIC_INBOX_FDS])
{
	union vnic_message message = {.introduce = {.type = VNIC_ATTACH_INTRODUCE, .qpn = qpn}};
	struct passed passed = {.wanted = VNIC_INBOX_FDS};
	int ret;

	memcpy(message.introduce.mac, mac, sizeof(message.introduce.mac));
	ret = send_request_with_fds(to_shm(transport), &message, sizeof(message.introduce),
				    &passed);
	if (!ret)
		ret = message.introduce.status;
	if (!ret && passed.wanted == VNIC_INBOX_FDS) {
		memcpy(fds, passed.fds, VNIC_INBOX_FDS * sizeof(fds[0]));
		return 0;
	}
	vnic_close_fds(passed.fds, passed.wanted);
	return ret ? ret : -EPROTO;
}

/* For a forked child: a signal handler may have forked, and may return into take_turn. There `left`
 * ends the loop. The changed `served` ends a futex wait that the kernel begins again. */
static void leave_requests(struct shm *shm)
{
	if (!atomic_exchange(&shm->left, true))
		atomic_fetch_xor(&shm->served, 1u << 31);
}

/* Sets the members to -1 before it closes them: a child that a signal handler forks in between must
 * not close them again, when other files may have these numbers. */
static void close_connection(struct shm *shm)
{
	const int fds[] = {shm->socket, shm->doorbell, shm->interrupt, shm->notice, shm->spare};

	shm->socket = shm->doorbell = shm->interrupt = shm->notice = shm->spare = -1;
	shm->base.ctl_fd = shm->base.irq_fd = shm->base.notice_fd = -1;
	vnic_close_fds(fds, sizeof(fds) / sizeof(fds[0]));
}

static void shm_isolate(struct vnic_transport *transport)
{
	struct shm *shm = to_shm(transport);

	if (shm->memory)
		vnic_memory_isolate(shm->memory, shm->memory_size);
	if (shm->bars)
		vnic_memory_isolate(shm->bars, VNIC_BAR_SIZE);
	leave_requests(shm);
}

/* Closes descriptors and mappings. Frees *shm, except in a forked child: a signal handler may have
 * forked, and may return into a request that still uses *shm. True: freed. */
static bool shm_close(struct vnic_transport *transport)
{
	struct shm *shm = to_shm(transport);

	if (shm->memory)
		munmap(shm->memory, shm->memory_size);
	if (shm->bars)
		munmap(shm->bars, VNIC_BAR_SIZE);
	close_connection(shm);
	vnic_close_fds(&shm->record_fd, 1);
	vnic_close_fds(shm->introduced_fds, VNIC_INBOX_FDS);
	if (in_forked_child(shm)) {
		leave_requests(shm);
		return false;
	}
	free(shm);
	return true;
}

static const struct vnic_transport_ops shm_ops = {
	.memory = shm_memory,
	.reg_write = shm_reg_write,
	.reg_read = shm_reg_read,
	.kick = shm_kick,
	.resolve = shm_resolve,
	.make_inbox = shm_make_inbox,
	.inbox = shm_inbox,
	.introduce = shm_introduce,
	.remote = shm_remote,
	.qpn = shm_qpn,
	.set_qpn = shm_set_qpn,
	.lease = shm_lease,
	.uplink = shm_uplink,
	.notice = shm_notice,
	.introduction = shm_introduction,
	.record = shm_record,
	.isolate = shm_isolate,
	.close = shm_close,
};

static bool welcome_valid(struct shm *shm, const struct vnic_attach_welcome *welcome)
{
	shm->mtu = welcome->mtu;
	return welcome->mtu >= VMXNET3_MIN_MTU && welcome->mtu <= VMXNET3_MAX_MTU &&
	       port_valid(shm, &welcome->port) && is_lease(welcome->qpn_first) &&
	       welcome->qpn_count == VNIC_LEASE_QPNS;
}

/* Takes over the descriptors of the daemon's welcome, and maps the BARs. Returns 0 or the error of
 * the mapping; the driver owns the descriptors in both cases. */
static int adopt_fds(struct shm *shm, const int fds[VNIC_FDS])
{
	int ret = vnic_memory_map(fds[VNIC_FD_BARS], VNIC_BAR_SIZE, &shm->bars);

	close(fds[VNIC_FD_BARS]);
	shm->doorbell = fds[VNIC_FD_DOORBELL];
	shm->interrupt = fds[VNIC_FD_INTERRUPT];
	shm->notice = fds[VNIC_FD_NOTICE];
	shm->base.bar0 = shm->bars;
	shm->base.irq_fd = shm->interrupt;
	shm->base.ctl_fd = shm->socket;
	shm->base.notice_fd = shm->notice;
	return ret;
}

static int send_hello(struct shm *shm, const struct vnic_attach_hello *hello,
		      struct vnic_attach_welcome *welcome)
{
	union vnic_message message = {.hello = *hello};
	uint32_t fd_count = VNIC_FDS;
	int fds[VNIC_FDS];
	int ret, len;

	message.hello.type = VNIC_ATTACH_HELLO;
	message.hello.version = VNIC_ATTACH_VERSION;
	len = send_and_receive(shm, &message, sizeof(message.hello), fds, &fd_count);
	ret = vnic_message_check_welcome(&message, len);
	if (!ret && len == (int)sizeof(message.welcome) && fd_count == VNIC_FDS &&
	    welcome_valid(shm, &message.welcome)) {
		*welcome = message.welcome;
		return adopt_fds(shm, fds);
	}
	vnic_close_fds(fds, fd_count);
	if (ret == -EAGAIN)
		return -ETIMEDOUT;
	return ret ? ret : -EPROTO;
}

/*
 * Connects in place of `old`, which keeps its descriptors until a daemon listens. If `old` closed
 * them earlier, a program at its limit of descriptors could take their numbers, and the driver
 * could not attach again. Returns as vnic_attach_connect.
 */
static int connect_again(const char *run_dir, struct shm *old)
{
	int fd = vnic_attach_connect(run_dir);

	if (fd == -EMFILE) {
		release_spare(old);
		fd = vnic_attach_connect(run_dir);
	}
	if (fd >= 0)
		close_connection(old);
	else if (old->spare < 0)
		keep_spare(old);
	return fd;
}

/*
 * Connects to the daemon, sends HELLO, and activates the NIC. `hello` has what the client wants;
 * the function sets its type and version. `old`: the connection to a daemon that has ended, or
 * NULL.
 */
static int attach_driver(const char *run_dir, const struct vnic_attach_hello *hello,
			 struct shm *old, struct vnic_attach_welcome *welcome,
			 struct vnic_driver **drv)
{
	struct shm *shm = calloc(1, sizeof(*shm));
	int ret;

	if (!shm)
		return -ENOMEM;
	shm->base.ops = &shm_ops;
	shm->owner = getpid();
	shm->doorbell = -1;
	shm->interrupt = -1;
	shm->notice = -1;
	shm->spare = -1;
	shm->record_fd = -1;
	memset(shm->introduced_fds, -1, sizeof(shm->introduced_fds));
	shm->socket = old ? connect_again(run_dir, old) : vnic_attach_connect(run_dir);
	ret = shm->socket < 0 ? shm->socket : send_hello(shm, hello, welcome);
	if (ret) {
		shm_close(&shm->base);
		return ret;
	}
	return vnic_driver_open(&shm->base, welcome->mtu, drv);
}

int vnic_driver_attach(const char *run_dir, struct vnic_attach_welcome *welcome,
		       struct vnic_driver **drv)
{
	return attach_driver(run_dir, &(struct vnic_attach_hello){0}, NULL, welcome, drv);
}

int vnic_driver_claim(const char *run_dir, const struct vnic_attach_welcome *was,
		      struct vnic_driver *old, struct vnic_attach_welcome *welcome,
		      struct vnic_driver **drv)
{
	const struct vnic_attach_hello hello = {.token = was->token, .qpn_first = was->qpn_first};

	return attach_driver(run_dir, &hello, old ? to_shm(old->transport) : NULL, welcome, drv);
}

int vnic_driver_demand(const char *run_dir, uint32_t qpn_first, struct vnic_attach_welcome *welcome,
		       struct vnic_driver **drv)
{
	const struct vnic_attach_hello hello = {.qpn_first = qpn_first, .demands = 1};

	return attach_driver(run_dir, &hello, NULL, welcome, drv);
}

int vnic_driver_attach_machine(const char *run_dir, const uint8_t mac[6],
			       const struct vnic_attach_welcome *was,
			       struct vnic_attach_welcome *welcome, struct vnic_driver **drv)
{
	struct vnic_attach_hello hello = {.token = was ? was->token : 0,
					  .qpn_first = was ? was->qpn_first : 0};

	memcpy(hello.mac, mac, sizeof(hello.mac));
	return attach_driver(run_dir, &hello, NULL, welcome, drv);
}
