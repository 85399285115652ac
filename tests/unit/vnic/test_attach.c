/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The attachment over a real socket: a child process has the driver, this process is the daemon.
 * The child reports by its exit status; a lost wake-up appears as a timeout of poll(2).
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <vnic/driver.h>

#include "daemon.h"

#define ECHOES 20000
#define BURST  32
#define CHECK(ok)                                                               \
	do {                                                                    \
		if (!(ok)) {                                                    \
			fprintf(stderr, "child: line %d: %s\n", __LINE__, #ok); \
			_exit(1);                                               \
		}                                                               \
	} while (0)

/* Answers messages until the device is in `state`, or vnic_server_event says otherwise. */
static int serve_until(struct daemon *d, enum vnic_device_state state)
{
	int ret = 0;

	while (!ret) {
		struct vnic_device *dev = vnic_server_device(d->client);

		if (dev && vnic_device_state(dev) == state)
			break;
		assert_true(readable(vnic_server_fd(d->client), PATIENCE));
		ret = vnic_server_event(d->client, &ops, d);
	}
	return ret;
}

static int serve_to_end(struct daemon *d)
{
	int ret = 0;

	while (!ret) {
		assert_true(readable(vnic_server_fd(d->client), PATIENCE));
		ret = vnic_server_event(d->client, &ops, d);
	}
	return ret;
}

static pid_t spawn(struct daemon *d, void (*body)(const char *run_dir))
{
	d->child = fork();
	assert_true(d->child >= 0);
	if (d->child == 0) {
		close(d->listen_fd);
		body(d->run_dir);
		_exit(0);
	}
	return d->child;
}

static void expect_exit(struct daemon *d, int code)
{
	int status;

	assert_int_equal(waitpid(d->child, &status, 0), d->child);
	d->child = 0;
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), code);
}

/* Serves until a client has resolved one more address. */
static void resolve_one(struct daemon *d)
{
	unsigned int before = d->resolves;

	while (d->resolves == before) {
		assert_true(readable(vnic_server_fd(d->client), PATIENCE));
		assert_int_equal(vnic_server_event(d->client, &ops, d), 0);
	}
}

/* --- Frames in both directions; both sides sleep between them. */

static uint32_t wait_for_frames(struct vnic_driver *drv, struct vnic_frame *frames, uint32_t n)
{
	int fd = vnic_driver_irq_fd(drv);
	uint64_t word;
	uint32_t got;

	while (!(got = vnic_driver_rx(drv, frames, n))) {
		if (vnic_driver_irq_unmask(drv))
			continue;
		CHECK(readable(fd, PATIENCE));
		CHECK(read(fd, &word, sizeof(word)) == sizeof(word));
	}
	vnic_driver_irq_mask(drv);
	return got;
}

static void echo_client(const char *run_dir)
{
	struct vnic_attach_welcome w;
	struct vnic_driver *drv;
	struct vnic_frame frames[BURST];
	uint32_t sent = 0, back = 0;

	CHECK(vnic_driver_attach(run_dir, &w, &drv) == 0);
	CHECK(!memcmp(w.mac, daemon_mac, 6) && w.mtu == MTU && w.qpn_first == 4096);
	while (back < ECHOES) {
		uint32_t n = 1 + sent % BURST;

		n = vnic_driver_tx_reserve(drv, frames, n < ECHOES - sent ? n : ECHOES - sent);
		for (uint32_t i = 0; i < n; i++, sent++) {
			frames[i].len = 60 + sent % MTU / 2;
			memset(frames[i].data, (int)sent, frames[i].len);
			frames[i].data[0] = 0; /* a unicast destination */
			memcpy(frames[i].data + 6, &sent, sizeof(sent));
		}
		vnic_driver_tx_commit(drv, frames, n);
		n = wait_for_frames(drv, frames, BURST);
		for (uint32_t i = 0; i < n; i++, back++) {
			CHECK(frames[i].len == 60 + back % MTU / 2);
			CHECK(!memcmp(frames[i].data + 6, &back, sizeof(back)));
			CHECK(frames[i].data[frames[i].len - 1] == (uint8_t)back);
		}
		vnic_driver_rx_release(drv, n);
	}
	vnic_driver_detach(drv);
}

static uint32_t echo_frames(struct vnic_device *dev)
{
	struct vnic_tx_frame frames[BURST];
	uint32_t n = vnic_device_tx(dev, 0, frames, BURST), i;

	for (i = 0; i < n; i++)
		if (vnic_device_rx(dev, 0, frames[i].data, frames[i].len))
			break;
	vnic_device_tx_done(dev, 0, i);
	vnic_device_flush(dev);
	return i;
}

/* As the daemon does: handle all frames, publish the sleep, look again, then sleep. */
static int echo_until_quiet(struct daemon *d)
{
	struct vnic_device *dev = vnic_server_device(d->client);
	int doorbell = vnic_server_doorbell_fd(d->client);
	struct pollfd fds[] = {{.fd = doorbell, .events = POLLIN},
			       {.fd = vnic_server_fd(d->client), .events = POLLIN}};

	while (vnic_device_state(dev) == VNIC_DEVICE_ACTIVE) {
		uint64_t count;
		int ret = 0;

		while (echo_frames(dev))
			;
		vnic_device_set_asleep(dev, true);
		if (echo_frames(dev)) {
			vnic_device_set_asleep(dev, false);
			continue;
		}
		assert_true(poll(fds, 2, PATIENCE) > 0);
		vnic_device_set_asleep(dev, false);
		if (fds[0].revents) /* the client is ours, so a level-triggered poll is enough */
			assert_int_equal(read(doorbell, &count, sizeof(count)), sizeof(count));
		if (fds[1].revents)
			ret = vnic_server_event(d->client, &ops, d);
		if (ret)
			return ret;
	}
	return 0;
}

static void test_frames_pass_in_both_directions(void **state)
{
	struct daemon *d = *state;
	const uint64_t *counters;

	spawn(d, echo_client);
	accept_client(d);
	assert_int_equal(vnic_server_pid(d->client), d->child);
	assert_null(vnic_server_device(d->client));
	assert_int_equal(serve_until(d, VNIC_DEVICE_ACTIVE), 0);
	assert_int_equal(echo_until_quiet(d), 0);
	assert_int_equal(serve_to_end(d), -ECONNRESET);
	expect_exit(d, 0);
	counters = vnic_device_counters(vnic_server_device(d->client));
	assert_int_equal(counters[VNIC_TX_FRAMES], ECHOES);
	assert_int_equal(counters[VNIC_RX_FRAMES], ECHOES);
}

/* --- A client that reads its interrupts into memory that never comes. */

static void *page; /* of userfaultfd */

static void *read_interrupt_for_ever(void *irq_fd)
{
	CHECK(readable(*(int *)irq_fd, PATIENCE));
	(void)!read(*(int *)irq_fd, page, sizeof(uint64_t));
	return NULL;
}

/* Returns the descriptor that tells of the access to the page; -1: the kernel has none. */
static int make_missing_page(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	struct uffdio_api api = {.api = UFFD_API};

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api))
		return -1;
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	range.range = (struct uffdio_range){(uintptr_t)page, 4096};
	return ioctl(fd, UFFDIO_REGISTER, &range) ? -1 : fd;
}

/* Unmasks the interrupt again when the thread sleeps within read(2), and tells the daemon so. */
static void stuck_client(const char *run_dir)
{
	struct vnic_attach_welcome w;
	struct vnic_driver *drv;
	struct vnic_frame frame;
	int fault = make_missing_page(), irq_fd;
	pthread_t thread;

	CHECK(vnic_driver_attach(run_dir, &w, &drv) == 0);
	irq_fd = vnic_driver_irq_fd(drv);
	if (fault >= 0) {
		CHECK(!vnic_driver_irq_unmask(drv));
		CHECK(!pthread_create(&thread, NULL, read_interrupt_for_ever, &irq_fd));
	}
	CHECK(vnic_driver_tx_reserve(drv, &frame, 1) == 1);
	frame.len = 60;
	memset(frame.data, 0, frame.len);
	frame.data[0] = fault < 0;
	vnic_driver_tx_commit(drv, &frame, 1);
	if (fault >= 0) {
		CHECK(readable(fault, PATIENCE));
		CHECK(vnic_driver_rx(drv, &frame, 1) == 1);
		vnic_driver_rx_release(drv, 1);
		CHECK(!vnic_driver_irq_unmask(drv));
		CHECK(vnic_driver_tx_reserve(drv, &frame, 1) == 1);
		frame.len = 60;
		vnic_driver_tx_commit(drv, &frame, 1);
	}
	pause();
}

/* Answers the client's messages until it sends a frame; returns the frame's first byte. */
static uint8_t await_frame(struct daemon *d)
{
	struct vnic_device *dev = vnic_server_device(d->client);
	struct vnic_tx_frame frame;
	uint8_t first;

	for (int i = 0; !vnic_device_tx(dev, 0, &frame, 1); i++) {
		assert_true(i < PATIENCE);
		if (readable(vnic_server_fd(d->client), 1))
			assert_int_equal(vnic_server_event(d->client, &ops, d), 0);
	}
	first = frame.data[0];
	vnic_device_tx_done(dev, 0, 1);
	return first;
}

/* With a pipe, the second interrupt would wait for ever, as the client holds the pipe's lock. */
static void test_interrupts_never_block_the_daemon(void **state)
{
	static const uint8_t frame[60];
	struct daemon *d = *state;
	struct vnic_device *dev;

	spawn(d, stuck_client);
	accept_client(d);
	assert_int_equal(serve_until(d, VNIC_DEVICE_ACTIVE), 0);
	dev = vnic_server_device(d->client);
	if (await_frame(d))
		skip();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(vnic_device_rx(dev, 0, frame, sizeof(frame)), 0);
		vnic_device_flush(dev);
		if (i == 0)
			await_frame(d);
	}
}

/* --- Clients that die. */

static void stream_client(const char *run_dir)
{
	struct vnic_attach_welcome w;
	struct vnic_driver *drv;
	struct vnic_frame frames[BURST];

	CHECK(vnic_driver_attach(run_dir, &w, &drv) == 0);
	for (;;) {
		uint32_t n = vnic_driver_tx_reserve(drv, frames, BURST);

		for (uint32_t i = 0; i < n; i++)
			frames[i].len = 1000;
		vnic_driver_tx_commit(drv, frames, n);
		vnic_driver_rx_release(drv, vnic_driver_rx(drv, frames, BURST));
	}
}

static void test_killed_clients_memory_stays_readable(void **state)
{
	struct daemon *d = *state;
	uint8_t data[60] = {0};
	struct vnic_device *dev;
	uint32_t echoed = 0;

	spawn(d, stream_client);
	accept_client(d);
	assert_int_equal(serve_until(d, VNIC_DEVICE_ACTIVE), 0);
	dev = vnic_server_device(d->client);
	while (echoed < 10000) {
		assert_int_equal(vnic_server_event(d->client, &ops, d), 0);
		echoed += echo_frames(dev);
	}
	kill(d->child, SIGKILL);
	waitpid(d->child, NULL, 0);
	d->child = 0;
	/*
	 * The dead client's memory is still mapped: its frames can be received, and interrupts have
	 * no effect.
	 */
	while (echo_frames(dev))
		;
	vnic_device_reg_write(dev, 0, VMXNET3_REG_IMR, 0);
	vnic_device_rx(dev, 0, data, sizeof(data));
	vnic_device_flush(dev);
	assert_int_equal(vnic_server_event(d->client, &ops, d), -ECONNRESET);
}

static void hold_client(const char *run_dir)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/" VNIC_SOCKET_NAME, run_dir);
	CHECK(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	pause();
}

static void test_held_connection_ends_with_its_client(void **state)
{
	struct daemon *d = *state;

	spawn(d, hold_client);
	accept_client(d);
	assert_int_equal(vnic_server_event(d->client, &ops, d), 0);
	assert_null(vnic_server_device(d->client));
	assert_false(readable(vnic_server_fd(d->client), 10));
	kill(d->child, SIGKILL);
	assert_int_equal(serve_to_end(d), -ECONNRESET);
}

static void test_attach_without_daemon_names_the_error(void **state)
{
	struct vnic_attach_welcome w;
	struct daemon *d = *state;
	struct vnic_driver *drv;
	char dir[200];

	assert_int_equal(vnic_driver_attach("/proc/nonexistent", &w, &drv), -ENOENT);
	memset(dir, 'x', sizeof(dir) - 1);
	dir[sizeof(dir) - 1] = '\0';
	assert_int_equal(vnic_driver_attach(dir, &w, &drv), -ENAMETOOLONG);
	close(d->listen_fd);
	assert_int_equal(vnic_driver_attach(d->run_dir, &w, &drv), -ECONNREFUSED);
	/* A new daemon replaces the dead one. */
	d->listen_fd = vnic_server_listen(d->run_dir);
	assert_true(d->listen_fd >= 0);
}

static bool is_impatient;

int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len);

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	const struct timeval soon = {.tv_usec = 1000};

	if (is_impatient && name == SO_RCVTIMEO)
		value = &soon;
	return __real_setsockopt(fd, level, name, value, len);
}

/* The daemon has stopped: the kernel accepts connections for it, and nothing answers. */
static void test_attach_to_a_stopped_daemon_times_out(void **state)
{
	const struct daemon *d = *state;
	struct vnic_attach_welcome w;
	struct vnic_driver *drv;

	is_impatient = true;
	assert_int_equal(vnic_driver_attach(d->run_dir, &w, &drv), -ETIMEDOUT);
	is_impatient = false;
}

/*
 * The daemon could read and change everything that its clients send, so a client accepts only
 * daemons of its own user or root.
 */
static void test_daemon_of_another_user_is_refused(void **state)
{
	const uid_t nobody = 65534;
	struct vnic_attach_welcome w;
	struct vnic_driver *drv = NULL;
	struct daemon *d = *state;

	if (getuid())
		skip();
	close(d->listen_fd);
	assert_int_equal(chown(d->run_dir, nobody, (gid_t)-1), 0);
	assert_int_equal(seteuid(nobody), 0);
	d->listen_fd = vnic_server_listen(d->run_dir);
	/* A daemon of the client's user is accepted. */
	assert_int_equal(close(vnic_attach_connect(d->run_dir)), 0);
	assert_int_equal(seteuid(0), 0);
	assert_true(d->listen_fd >= 0);
	assert_int_equal(vnic_attach_connect(d->run_dir), -EPERM);
	assert_int_equal(vnic_driver_attach(d->run_dir, &w, &drv), -EPERM);
	assert_null(drv);
}

static void refused_client(const char *run_dir)
{
	struct vnic_attach_welcome w;
	struct vnic_driver *drv;

	CHECK(vnic_driver_attach(run_dir, &w, &drv) == -EUSERS);
}

static void test_refused_client_learns_the_reason(void **state)
{
	struct daemon *d = *state;

	d->refuse = -EUSERS;
	spawn(d, refused_client);
	accept_client(d);
	assert_int_equal(serve_to_end(d), -ECONNRESET);
	expect_exit(d, 0);
}

/* --- Different builds of daemon and library. */

static void agreeing_client(const char *run_dir)
{
	const struct vnic_attach_hello hello = {VNIC_ATTACH_HELLO, VNIC_ATTACH_VERSION};
	struct vnic_attach_welcome w;
	int fd = vnic_attach_connect(run_dir);

	CHECK(fd >= 0);
	CHECK(vnic_attach_check_version(fd) == 0);
	/* This client can still send HELLO. */
	CHECK(send(fd, &hello, sizeof(hello), 0) == sizeof(hello));
	CHECK(recv(fd, &w, sizeof(w), 0) == sizeof(w) && w.status == -EUSERS);
}

static void test_version_check_still_permits_hello(void **state)
{
	struct daemon *d = *state;

	d->refuse = -EUSERS;
	d->hello.qpn_first = 1;
	spawn(d, agreeing_client);
	accept_client(d);
	assert_int_equal(serve_to_end(d), -ECONNRESET);
	/* The daemon answered only the HELLO with a request. */
	assert_int_equal(d->hello.qpn_first, 0);
	expect_exit(d, 0);
}

/* Answers of other builds' daemons to HELLO, and the driver's result. */
static const struct {
	size_t len; /* 0 = the daemon closes the connection */
	int32_t status;
	uint32_t fds;
	int error;
} foreign[] = {
	{8, -EPROTO, 0, -EPROTO},
	{8, -EUSERS, 0, -EUSERS},
	{sizeof(struct vnic_attach_welcome), -EPROTO, 0, -EPROTO},
	{sizeof(struct vnic_attach_welcome) + 64, -EPROTO, 0, -EPROTO},
	{sizeof(struct vnic_attach_welcome), -EPROTO, VNIC_FDS, -EPROTO},
	/* A welcome of another length, with other or more descriptors, or without contents. */
	{4, 0, 0, -EPROTO},
	{8, 0, VNIC_FDS, -EPROTO},
	{sizeof(struct vnic_attach_welcome) - 8, 0, VNIC_FDS, -EPROTO},
	{sizeof(struct vnic_attach_welcome) + 64, 0, VNIC_FDS, -EPROTO},
	{sizeof(struct vnic_attach_welcome), 0, VNIC_FDS - 1, -EPROTO},
	{sizeof(struct vnic_attach_welcome), 0, VNIC_FDS + 1, -EPROTO},
	{sizeof(struct vnic_attach_welcome), 0, VNIC_FDS, -EPROTO},
	{sizeof(struct vnic_attach_welcome), 1, VNIC_FDS, -EPROTO},
	{0, 0, 0, -ECONNRESET},
};

#define FOREIGN (sizeof(foreign) / sizeof(foreign[0]))

static void answer_foreign(int fd, size_t number)
{
	union {
		struct cmsghdr header;
		uint8_t room[CMSG_SPACE((VNIC_FDS + 1) * sizeof(int))];
	} control = {.header = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
	struct {
		struct vnic_attach_welcome welcome;
		uint8_t more[64];
	} text = {.welcome = {.type = VNIC_ATTACH_HELLO, .status = foreign[number].status}};
	struct iovec iov = {.iov_base = &text, .iov_len = foreign[number].len};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
	uint32_t fds = foreign[number].fds;

	control.header.cmsg_len = CMSG_LEN(fds * sizeof(int));
	for (uint32_t i = 0; i < fds; i++)
		memcpy(CMSG_DATA(&control.header) + i * sizeof(fd), &fd, sizeof(fd));
	if (fds) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(fds * sizeof(int));
	}
	assert_int_equal(
		recv(fd, &(struct vnic_attach_hello){0}, sizeof(struct vnic_attach_hello), 0),
		sizeof(struct vnic_attach_hello));
	if (iov.iov_len)
		assert_int_equal(sendmsg(fd, &message, 0), iov.iov_len);
}

static void foreign_client(const char *run_dir)
{
	struct vnic_driver *drv = NULL;
	struct vnic_attach_welcome w;
	int before = open("/dev/null", O_RDONLY);

	close(before);
	for (size_t i = 0; i < FOREIGN; i++) {
		int ret = vnic_driver_attach(run_dir, &w, &drv);

		if (ret != foreign[i].error || drv) {
			fprintf(stderr, "child: answer %zu: %d\n", i, ret);
			_exit(1);
		}
	}
	/* The driver closes the received descriptors. */
	CHECK(open("/dev/null", O_RDONLY) == before);
}

static void test_daemon_of_another_version_is_refused(void **state)
{
	struct daemon *d = *state;

	spawn(d, foreign_client);
	for (size_t i = 0; i < FOREIGN; i++) {
		int fd;

		assert_true(readable(d->listen_fd, PATIENCE));
		fd = accept(d->listen_fd, NULL, NULL);
		assert_true(fd >= 0);
		answer_foreign(fd, i);
		close(fd);
	}
	expect_exit(d, 0);
}

/* --- RESOLVE, and the end of the daemon. */

/* The descriptors of an answer do not fit; requests go on. */
static void check_without_descriptors(struct vnic_driver *drv)
{
	struct vnic_inbox *inbox;
	struct rlimit limit;
	rlim_t before;

	CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	before = limit.rlim_cur;
	limit.rlim_cur = 0;
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	CHECK(vnic_driver_make_inbox(drv, MTU, &inbox) == -EMFILE);
	limit.rlim_cur = before;
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

static void resolve_client(const char *run_dir)
{
	const uint8_t here[16] = {[15] = 7}, nowhere[16] = {1};
	const uint8_t want[6] = {2, 0, 0, 0, 3, 7};
	struct vnic_attach_welcome w;
	uint32_t lease = 0;
	struct vnic_driver *drv;
	struct vnic_next_hop hop;

	CHECK(vnic_driver_attach(run_dir, &w, &drv) == 0);
	check_without_descriptors(drv);
	CHECK(vnic_driver_lease(drv, &lease) == 0);
	CHECK(lease == 8192);
	CHECK(vnic_driver_resolve(drv, 3, here, &hop) == 0);
	/* The driver refuses an answer that is no block of QPNs. */
	lease = 0;
	CHECK(vnic_driver_lease(drv, &lease) == -EPROTO);
	CHECK(vnic_driver_add_qpn(drv, 0x456, VNIC_QPN_REACHABLE) == 0);
	CHECK(vnic_driver_add_qpn(drv, 0x456, 0) == -EEXIST);
	CHECK(vnic_driver_query_qpn(drv, (const uint8_t[16]){[15] = 7}, 0x789) == 0);
	CHECK(vnic_driver_query_qpn(drv, (const uint8_t[16]){[15] = 8}, 0x789) == -ENOENT);
	CHECK(vnic_driver_remove_qpn(drv, 0x456) == 0);
	CHECK(vnic_driver_remove_qpn(drv, 0x457) == -ENOENT);
	CHECK(!memcmp(hop.mac, want, sizeof(hop.mac)) && hop.hop_limit == 9);
	CHECK(vnic_driver_register(drv, 0x1005, here, 0x123) == 0);
	CHECK(vnic_driver_register(drv, 0x1005, here, 0x123) == 0);
	CHECK(vnic_driver_register(drv, 0x1005, here, 0x124) == -ENOSPC);
	CHECK(vnic_driver_unregister(drv, 0x1005, here, 0x123) == 0);
	CHECK(vnic_driver_resolve(drv, 3, nowhere, &hop) == -EHOSTUNREACH);
	/* The daemon ends now: both descriptors become readable, and no call hangs. */
	CHECK(readable(vnic_driver_ctl_fd(drv), PATIENCE));
	CHECK(readable(vnic_driver_irq_fd(drv), PATIENCE));
	CHECK(vnic_driver_resolve(drv, 3, here, &hop) < 0);
	CHECK(vnic_driver_register(drv, 0x1005, here, 0x123) < 0);
	vnic_driver_detach(drv);
}

static void test_request_to_an_ended_daemon_fails(void **state)
{
	struct daemon *d = *state;

	spawn(d, resolve_client);
	accept_client(d);
	d->lease = 8192;
	resolve_one(d);
	d->lease++;
	resolve_one(d);
	assert_int_equal(vnic_server_resolved(d->client, 0, NULL), -EINVAL);
	assert_int_equal(d->registered, 1);
	close(vnic_server_close(d->client));
	d->client = NULL;
	expect_exit(d, 0);
}

/* --- Messages without an answer. */

static int full[2]; /* the client tells how many messages fit the socket */

static void changing_client(const char *run_dir)
{
	const uint8_t here[16] = {[15] = 7};
	struct vnic_attach_welcome w;
	struct vnic_driver *drv;
	struct vnic_next_hop hop;
	uint32_t sent = 0;
	int rc;

	CHECK(vnic_driver_attach(run_dir, &w, &drv) == 0);
	CHECK(vnic_driver_resolve(drv, 3, here, &hop) == 0);
	/* The daemon does not read now: no call waits. */
	while (!(rc = vnic_driver_set_qpn(drv, 0x456, VNIC_QPN_REACHABLE)))
		sent++;
	CHECK(rc == -EAGAIN);
	CHECK(!vnic_driver_qpns_handled(drv));
	CHECK(write(full[1], &sent, sizeof(sent)) == sizeof(sent));
	/* The answer is that to this request. */
	CHECK(vnic_driver_resolve(drv, 3, here, &hop) == 0);
	CHECK(vnic_driver_qpns_handled(drv));
	CHECK(vnic_driver_set_qpn(drv, 0x456, VNIC_QPN_UPLINK) == 0);
	CHECK(vnic_driver_resolve(drv, 3, here, &hop) == 0);
	CHECK(vnic_driver_qpns_handled(drv));
	/* The daemon ends now. */
	CHECK(readable(vnic_driver_ctl_fd(drv), PATIENCE));
	rc = vnic_driver_set_qpn(drv, 0x456, 0);
	CHECK(rc < 0 && rc != -EAGAIN);
	vnic_driver_detach(drv);
}

static void test_unanswered_messages_arrive_in_order(void **state)
{
	struct daemon *d = *state;
	uint32_t sent;

	assert_int_equal(pipe(full), 0);
	spawn(d, changing_client);
	accept_client(d);
	resolve_one(d);
	assert_int_equal(read(full[0], &sent, sizeof(sent)), sizeof(sent));
	assert_true(sent > 0);
	resolve_one(d);
	assert_int_equal(d->sets, sent);
	assert_int_equal(d->flags, VNIC_QPN_REACHABLE);
	resolve_one(d);
	assert_int_equal(d->sets, sent + 1);
	assert_int_equal(d->flags, VNIC_QPN_UPLINK);
	close(vnic_server_close(d->client));
	d->client = NULL;
	expect_exit(d, 0);
	close(full[0]);
	close(full[1]);
}

/* --- Two threads that call the driver. */

#define ASKS 4 /* of each */

static struct vnic_driver *shared_driver;

/* The thread's number travels as the GID index. */
static void *ask_often(void *number)
{
	const uint8_t here[16] = {0};
	struct vnic_next_hop hop;

	for (int i = 0; i < ASKS; i++)
		CHECK(vnic_driver_resolve(shared_driver, *(uint8_t *)number, here, &hop) == 0);
	return NULL;
}

static void asking_client(const char *run_dir)
{
	uint8_t numbers[2] = {0, 1};
	struct vnic_attach_welcome w;
	pthread_t thread;

	CHECK(vnic_driver_attach(run_dir, &w, &shared_driver) == 0);
	CHECK(pthread_create(&thread, NULL, ask_often, &numbers[1]) == 0);
	ask_often(&numbers[0]);
	CHECK(pthread_join(thread, NULL) == 0);
	vnic_driver_detach(shared_driver);
}

static void note_asker(void *ctx, struct vnic_server_client *client,
		       const struct vnic_attach_resolve *request)
{
	struct daemon *d = ctx;

	(void)client;
	d->asker = request->sgid_index;
	d->resolves++;
}

static char state_of(pid_t pid, const char *tid)
{
	char path[64 + NAME_MAX], text[256] = {0};
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", pid, tid);
	file = fopen(path, "r");
	if (!file)
		return 'X';
	fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	/* As in proc(5), the state follows the name in parentheses. */
	return strrchr(text, ')') ? strrchr(text, ')')[2] : 'X';
}

/* Whether the child has two threads, and both sleep. */
static bool both_sleep(pid_t pid)
{
	struct dirent *entry;
	char path[32];
	int asleep = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	assert_non_null(tasks);
	while ((entry = readdir(tasks)))
		asleep += entry->d_name[0] != '.' && state_of(pid, entry->d_name) == 'S';
	closedir(tasks);
	return asleep == 2;
}

/* A thread that calls again at once waits behind a thread that waits already. */
static void test_waiting_thread_asks_before_a_repeating_one(void **state)
{
	const struct vnic_server_ops noting = {.welcome = welcome, .resolve = note_asker};
	const struct vnic_next_hop hop = {.hop_limit = 1};
	struct daemon *d = *state;
	int before = -1;

	spawn(d, asking_client);
	accept_client(d);
	for (uint32_t asked = 0; asked < 2 * ASKS; before = d->asker, asked++) {
		while (d->resolves == asked) {
			assert_true(readable(vnic_server_fd(d->client), PATIENCE));
			assert_int_equal(vnic_server_event(d->client, &noting, d), 0);
		}
		assert_int_not_equal(d->asker, before);
		/*
		 * One thread waits for its answer, the other for its turn; in the end one thread is
		 * alone.
		 */
		while (asked + 1 < 2 * ASKS && !both_sleep(d->child))
			usleep(100);
		assert_int_equal(vnic_server_resolved(d->client, 0, &hop), 0);
	}
	assert_int_equal(serve_to_end(d), -ECONNRESET);
	expect_exit(d, 0);
}

/* --- Notices. */

static void notice_client(const char *run_dir)
{
	int question;
	struct vnic_attach_port port;
	struct vnic_next_hop hop;
	struct vnic_attach_welcome w;
	struct vnic_driver *drv;

	CHECK(vnic_driver_attach(run_dir, &w, &drv) == 0);
	CHECK(w.port.up == 0 && w.port.link_mtu == MTU && !w.port.gids[5].valid);
	/* A notice that the daemon sent before its answer is in the port's state. */
	CHECK(vnic_driver_resolve(drv, 0, (const uint8_t[16]){0}, &hop) == 0);
	CHECK(readable(vnic_driver_notice_fd(drv), PATIENCE));
	CHECK(vnic_driver_notice(drv, &port, &question));
	CHECK(port.up == 1 && port.link_mtu == 1000 && port.gids[5].valid == 7);
	CHECK(!strcmp(port.hca.name, "hca0") && port.hca.port == 1 && port.hca.generation == 3);
	CHECK(!vnic_driver_notice(drv, &port, &question));
	CHECK(!readable(vnic_driver_notice_fd(drv), 0));
	/* The daemon ends; its closed socket must not look like new notices for ever. */
	CHECK(vnic_driver_resolve(drv, 0, (const uint8_t[16]){0}, &hop) < 0);
	CHECK(readable(vnic_driver_notice_fd(drv), PATIENCE));
	CHECK(!vnic_driver_notice(drv, &port, &question));
	CHECK(vnic_driver_notice_fd(drv) == -1);
	vnic_driver_detach(drv);
}

/* Of several notices the last one counts; a notice with an MTU larger than the NIC's is ignored. */
static void test_last_valid_notice_counts(void **state)
{
	struct vnic_attach_port port = {.link_mtu = 600};
	struct daemon *d = *state;

	spawn(d, notice_client);
	accept_client(d);
	assert_int_equal(vnic_server_notice_fd(d->client), -1);
	assert_int_equal(vnic_server_notice(d->client, &port), 0);
	assert_int_equal(serve_until(d, VNIC_DEVICE_ACTIVE), 0);
	assert_int_equal(vnic_server_notice(d->client, &port), 0);
	port.link_mtu = 1000;
	port.up = 1;
	port.gids[5].valid = 7;
	port.hca = (struct vnic_attach_hca){.name = "hca0", .port = 1, .generation = 3};
	assert_int_equal(vnic_server_notice(d->client, &port), 0);
	port.link_mtu = MTU + 1;
	assert_int_equal(vnic_server_notice(d->client, &port), 0);
	port.link_mtu = 0;
	assert_int_equal(vnic_server_notice(d->client, &port), 0);
	/* The name of an HCA without its end, and a port without an HCA. */
	port.link_mtu = 1000;
	memset(port.hca.name, 'x', sizeof(port.hca.name));
	port.hca.port = 1;
	assert_int_equal(vnic_server_notice(d->client, &port), 0);
	port.hca.name[0] = '\0';
	assert_int_equal(vnic_server_notice(d->client, &port), 0);
	resolve_one(d);
	assert_true(readable(vnic_server_fd(d->client), PATIENCE));
	close(vnic_server_close(d->client));
	d->client = NULL;
	expect_exit(d, 0);
}

static void idle_client(const char *run_dir)
{
	int question;
	struct vnic_attach_port port;
	struct vnic_next_hop hop;
	struct vnic_attach_welcome w;
	struct vnic_driver *drv;

	CHECK(vnic_driver_attach(run_dir, &w, &drv) == 0);
	CHECK(vnic_driver_resolve(drv, 0, (const uint8_t[16]){0}, &hop) == 0);
	CHECK(vnic_driver_notice(drv, &port, &question));
	/* The socket has room again, and the daemon uses it. */
	while (port.link_mtu != 1000) {
		CHECK(readable(vnic_driver_notice_fd(drv), PATIENCE));
		CHECK(vnic_driver_notice(drv, &port, &question));
	}
	vnic_driver_detach(drv);
}

/* A client that reads no notices delays nobody, and gets the newest notice when it reads. */
static void test_client_gets_the_newest_unread_notice(void **state)
{
	struct vnic_attach_port port = {.link_mtu = MTU};
	struct daemon *d = *state;
	struct pollfd room;
	int ret = 0;

	spawn(d, idle_client);
	accept_client(d);
	assert_int_equal(serve_until(d, VNIC_DEVICE_ACTIVE), 0);
	for (int i = 0; !ret && i < 100000; i++)
		ret = vnic_server_notice(d->client, &port);
	assert_int_equal(ret, -EAGAIN);
	room = (struct pollfd){.fd = vnic_server_notice_fd(d->client), .events = POLLOUT};
	assert_int_equal(poll(&room, 1, 0), 0);
	resolve_one(d);
	assert_int_equal(poll(&room, 1, PATIENCE), 1);
	port.link_mtu = 1000;
	assert_int_equal(vnic_server_notice(d->client, &port), 0);
	assert_int_equal(serve_to_end(d), -ECONNRESET);
	expect_exit(d, 0);
}

static void questioned_client(const char *run_dir)
{
	struct vnic_next_hop hop;
	const struct vnic_attach_state answer = {.status = -ENOSYS};
	struct vnic_attach_port port;
	struct vnic_attach_welcome w;
	struct vnic_driver *drv;
	int question;

	CHECK(vnic_driver_attach(run_dir, &w, &drv) == 0);
	for (int i = 0; i < 2; i++) {
		CHECK(vnic_driver_resolve(drv, 0, (const uint8_t[16]){0}, &hop) == 0);
		CHECK(readable(vnic_driver_notice_fd(drv), PATIENCE));
		CHECK(!vnic_driver_notice(drv, &port, &question));
		CHECK(question >= 0);
		/* After the first question the daemon has sent the port's state. */
		if (i == 0) {
			int none;

			CHECK(vnic_driver_notice(drv, &port, &none));
			CHECK(none == -1);
		}
		CHECK(write(question, &answer, sizeof(answer)) == sizeof(answer));
		close(question);
	}
	vnic_driver_detach(drv);
}

/*
 * The daemon asks a process that reads nothing a limited number of questions, so that notices still
 * find room.
 */
static void test_unread_questions_are_limited(void **state)
{
	const struct vnic_attach_port port = {.link_mtu = MTU};
	struct daemon *d = *state;
	int ends[2], asked = 0, rc;

	spawn(d, idle_client);
	accept_client(d);
	assert_int_equal(serve_until(d, VNIC_DEVICE_ACTIVE), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	/* A pending notice does not prevent a question. */
	assert_int_equal(vnic_server_notice(d->client, &port), 0);
	while (!(rc = vnic_server_query_state(d->client, ends[1])))
		asked++;
	assert_int_equal(rc, -EAGAIN);
	assert_in_range(asked, 2, 64);
	for (int i = 0; i < 16; i++)
		assert_int_equal(vnic_server_notice(d->client, &port), 0);
	close(ends[0]);
	close(ends[1]);
}

/* A question comes with the socket for its answer. */
static void test_question_arrives_with_its_answer_socket(void **state)
{
	const struct vnic_attach_port port = {.link_mtu = MTU};
	struct vnic_attach_state answer = {0};
	struct daemon *d = *state;
	int ends[2];

	spawn(d, questioned_client);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	accept_client(d);
	assert_int_equal(vnic_server_query_state(d->client, ends[1]), -ENOTCONN);
	assert_int_equal(serve_until(d, VNIC_DEVICE_ACTIVE), 0);
	assert_int_equal(vnic_server_query_state(d->client, ends[1]), 0);
	assert_int_equal(vnic_server_notice(d->client, &port), 0);
	close(ends[1]);
	resolve_one(d);
	assert_true(readable(ends[0], PATIENCE));
	assert_int_equal(read(ends[0], &answer, sizeof(answer)), sizeof(answer));
	assert_int_equal(answer.status, -ENOSYS);
	/* No other process holds the other end of that socket. */
	assert_int_equal(read(ends[0], &answer, sizeof(answer)), 0);
	close(ends[0]);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	assert_int_equal(vnic_server_query_state(d->client, ends[1]), 0);
	close(ends[1]);
	resolve_one(d);
	assert_int_equal(read(ends[0], &answer, sizeof(answer)), sizeof(answer));
	close(ends[0]);
	assert_int_equal(serve_to_end(d), -ECONNRESET);
	expect_exit(d, 0);
}

/* A forked child drops its parent's NIC; the parent's NIC still works. */
static void forking_client(const char *run_dir)
{
	struct vnic_attach_welcome w;
	struct vnic_driver *drv;
	struct vnic_frame frame;
	int status;
	pid_t pid;

	CHECK(vnic_driver_attach(run_dir, &w, &drv) == 0);
	pid = fork();
	if (pid == 0) {
		vnic_driver_abandon(drv);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(vnic_driver_tx_reserve(drv, &frame, 1) == 1);
	frame.len = 60;
	vnic_driver_tx_commit(drv, &frame, 1);
	CHECK(wait_for_frames(drv, &frame, 1) == 1 && frame.len == 60);
	vnic_driver_detach(drv);
}

static void test_client_that_forks_keeps_its_nic(void **state)
{
	struct daemon *d = *state;

	spawn(d, forking_client);
	accept_client(d);
	assert_int_equal(serve_until(d, VNIC_DEVICE_ACTIVE), 0);
	assert_int_equal(echo_until_quiet(d), 0);
	assert_int_equal(serve_to_end(d), -ECONNRESET);
	expect_exit(d, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DAEMON_TEST(test_frames_pass_in_both_directions),
		DAEMON_TEST(test_interrupts_never_block_the_daemon),
		DAEMON_TEST(test_killed_clients_memory_stays_readable),
		DAEMON_TEST(test_held_connection_ends_with_its_client),
		DAEMON_TEST(test_attach_without_daemon_names_the_error),
		DAEMON_TEST(test_attach_to_a_stopped_daemon_times_out),
		DAEMON_TEST(test_daemon_of_another_user_is_refused),
		DAEMON_TEST(test_refused_client_learns_the_reason),
		DAEMON_TEST(test_version_check_still_permits_hello),
		DAEMON_TEST(test_daemon_of_another_version_is_refused),
		DAEMON_TEST(test_request_to_an_ended_daemon_fails),
		DAEMON_TEST(test_unanswered_messages_arrive_in_order),
		DAEMON_TEST(test_last_valid_notice_counts),
		DAEMON_TEST(test_client_gets_the_newest_unread_notice),
		DAEMON_TEST(test_waiting_thread_asks_before_a_repeating_one),
		DAEMON_TEST(test_question_arrives_with_its_answer_socket),
		DAEMON_TEST(test_unread_questions_are_limited),
		DAEMON_TEST(test_client_that_forks_keeps_its_nic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
