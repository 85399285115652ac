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
	void *memory;
	uint64_t memory_size;
	int notice; /* base.notice_fd, also after the daemon has closed its end */
};

static struct shm *to_shm(struct vnic_transport *transport)
{
	return (struct shm *)transport;
}

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
	const int socket = shm->base.ctl_fd;
	int ret = in_forked_child(shm) ? -EIO : vnic_message_send(socket, message, len, NULL, 0);

	if (!ret)
		return vnic_message_recv(socket, message, fds, fd_count);
	*fd_count = 0;
	return ret;
}

/*
 * Sends a request and receives its answer. A failure ends the connection, because a late answer
 * must not be taken for the next request's. The connection goes on after -EMFILE (the answer has
 * come, without its descriptors) and in a forked child (-EIO), whose parent has it.
 */
static int exchange_messages(struct shm *shm, union vnic_message *message, uint32_t len,
			     struct vnic_passed *passed)
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
	shutdown(shm->base.ctl_fd, SHUT_RDWR);
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

static int shm_request(struct vnic_transport *transport, union vnic_message *message, uint32_t len,
		       struct vnic_passed *passed)
{
	struct shm *shm = to_shm(transport);
	int ret;

	take_turn(shm);
	ret = exchange_messages(shm, message, len, passed);
	end_turn(shm);
	return ret;
}

static int shm_memory(struct vnic_transport *transport, uint64_t size, void **memory)
{
	struct shm *shm = to_shm(transport);
	union vnic_message message = {.memory = {.type = VNIC_ATTACH_MEMORY, .size = size}};
	struct vnic_passed passed = {.wanted = 1};
	int ret = shm_request(transport, &message, sizeof(message.memory), &passed);

	if (!ret)
		ret = message.memory.status;
	if (!ret)
		ret = passed.wanted == 1 ? vnic_memory_map(passed.fds[0], size, &shm->memory)
					 : -EPROTO;
	if (ret) {
		vnic_close_fds(passed.fds, passed.wanted);
		return ret;
	}
	shm->base.spare = passed.fds[0];
	shm->memory_size = size;
	*memory = shm->memory;
	return 0;
}

static void shm_kick(struct vnic_transport *transport)
{
	uint32_t *asleep = vnic_reg(transport->bar0, VNIC_REG_ASLEEP);
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
	eventfd_write(transport->doorbell, 1);
	pthread_setcancelstate(cancel, NULL);
}

/* Waits for no turn at the socket: no answer comes that could be taken for another one. */
static int shm_post(struct vnic_transport *transport, const void *message, uint32_t len)
{
	return in_forked_child(to_shm(transport))
		       ? -EIO
		       : vnic_message_try_send(transport->ctl_fd, message, len);
}

/* For a forked child: a signal handler may have forked, and may return into take_turn. There `left`
 * ends the loop. The changed `served` ends a futex wait that the kernel begins again. */
static void leave_requests(struct shm *shm)
{
	if (!atomic_exchange(&shm->left, true))
		atomic_fetch_xor(&shm->served, 1u << 31);
}

void vnic_driver_release_spare(struct vnic_transport *transport)
{
	vnic_close_fds(&transport->spare, 1);
	transport->spare = -1;
}

void vnic_driver_keep_spare(struct vnic_transport *transport)
{
	transport->spare = vnic_place_fd(fcntl(transport->doorbell, F_DUPFD_CLOEXEC, 0));
}

/* Sets the members to -1 before it closes them: a child that a signal handler forks in between must
 * not close them again, when other files may have these numbers. */
static void close_connection(struct shm *shm)
{
	struct vnic_transport *base = &shm->base;
	const int fds[] = {base->ctl_fd, base->doorbell, base->irq_fd, shm->notice, base->spare};

	base->ctl_fd = base->doorbell = base->irq_fd = base->spare = -1;
	base->notice_fd = shm->notice = -1;
	vnic_close_fds(fds, sizeof(fds) / sizeof(fds[0]));
}

static void shm_isolate(struct vnic_transport *transport)
{
	struct shm *shm = to_shm(transport);

	if (shm->memory)
		vnic_memory_isolate(shm->memory, shm->memory_size);
	if (shm->base.bar0)
		vnic_memory_isolate(shm->base.bar0, VNIC_BAR_SIZE);
	leave_requests(shm);
}

/* Closes descriptors and mappings. Frees *shm, except in a forked child: a signal handler may have
 * forked, and may return into a request that still uses *shm. True: freed. */
static bool shm_close(struct vnic_transport *transport)
{
	struct shm *shm = to_shm(transport);

	if (shm->memory)
		munmap(shm->memory, shm->memory_size);
	if (shm->base.bar0)
		munmap(shm->base.bar0, VNIC_BAR_SIZE);
	close_connection(shm);
	if (in_forked_child(shm)) {
		leave_requests(shm);
		return false;
	}
	free(shm);
	return true;
}

static const struct vnic_transport_ops shm_ops = {
	.memory = shm_memory,
	.request = shm_request,
	.post = shm_post,
	.kick = shm_kick,
	.isolate = shm_isolate,
	.close = shm_close,
};

static bool welcome_valid(const struct vnic_attach_welcome *welcome)
{
	return welcome->mtu >= VMXNET3_MIN_MTU && welcome->mtu <= VMXNET3_MAX_MTU &&
	       vnic_driver_port_valid(welcome->mtu, &welcome->port) &&
	       vnic_driver_is_lease(welcome->qpn_first) && welcome->qpn_count == VNIC_LEASE_QPNS;
}

/* Takes over the descriptors of the daemon's welcome, and maps the BARs. Returns 0 or the error of
 * the mapping; the driver owns the descriptors in both cases. */
static int adopt_fds(struct shm *shm, const int fds[VNIC_FDS])
{
	int ret = vnic_memory_map(fds[VNIC_FD_BARS], VNIC_BAR_SIZE, &shm->base.bar0);

	close(fds[VNIC_FD_BARS]);
	shm->base.doorbell = fds[VNIC_FD_DOORBELL];
	shm->base.irq_fd = fds[VNIC_FD_INTERRUPT];
	shm->base.notice_fd = shm->notice = fds[VNIC_FD_NOTICE];
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
	    welcome_valid(&message.welcome)) {
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
		vnic_driver_release_spare(&old->base);
		fd = vnic_attach_connect(run_dir);
	}
	if (fd >= 0)
		close_connection(old);
	else if (old->base.spare < 0)
		vnic_driver_keep_spare(&old->base);
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
	shm->base = (struct vnic_transport){
		.ops = &shm_ops, .irq_fd = -1, .notice_fd = -1, .doorbell = -1, .spare = -1};
	shm->owner = getpid();
	shm->notice = -1;
	shm->base.ctl_fd = old ? connect_again(run_dir, old) : vnic_attach_connect(run_dir);
	ret = shm->base.ctl_fd < 0 ? shm->base.ctl_fd : send_hello(shm, hello, welcome);
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
