/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The attachment over a real socket: a child process has the driver, this process is the daemon.
 * The child reports by its exit status; a lost wake-up appears as a timeout of poll(2).
 */
#include "attach_client.h"
#include "send_fds.h"

#include <sys/time.h>

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

static int ticks[2]; /* pipe with one byte for each signal */

static void tick(int number)
{
	(void)number;
	CHECK(write(ticks[1], "", 1) == 1);
}

/* Connects until the daemon's queue of connections is full. */
static void fill_queue(const char *run_dir)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int rc;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/" VNIC_SOCKET_NAME, run_dir);
	do
		rc = connect(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0),
			     (struct sockaddr *)&address, sizeof(address));
	while (!rc);
	CHECK(errno == EAGAIN);
}

static void interrupted_client(const char *run_dir)
{
	const struct itimerval period = {{0, 1000}, {0, 1000}};
	const struct sigaction act = {.sa_handler = tick, .sa_flags = SA_RESTART};

	fill_queue(run_dir);
	CHECK(!sigaction(SIGALRM, &act, NULL) && !setitimer(ITIMER_REAL, &period, NULL));
	CHECK(vnic_attach_connect(run_dir) >= 0);
}

/* The daemon accepts the first connection after some signals. */
static void test_signals_do_not_end_the_wait_for_a_busy_daemon(void **state)
{
	struct daemon *d = *state;
	char byte;

	assert_int_equal(pipe(ticks), 0);
	spawn(d, interrupted_client);
	close(ticks[1]);
	for (int i = 0; i < 10; i++)
		assert_int_equal(read(ticks[0], &byte, 1), 1);
	close(accept(d->listen_fd, NULL, NULL));
	expect_exit(d, 0);
	close(ticks[0]);
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
	struct {
		struct vnic_attach_welcome welcome;
		uint8_t more[64];
	} text = {.welcome = {.type = VNIC_ATTACH_HELLO, .status = foreign[number].status}};
	const ssize_t length = (ssize_t)foreign[number].len;
	int fds[VNIC_FDS + 1];

	for (uint32_t i = 0; i < VNIC_FDS + 1; i++)
		fds[i] = fd;
	assert_int_equal(
		recv(fd, &(struct vnic_attach_hello){0}, sizeof(struct vnic_attach_hello), 0),
		sizeof(struct vnic_attach_hello));
	if (length)
		assert_int_equal(send_fds(fd, &text, foreign[number].len, fds, foreign[number].fds),
				 length);
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
		DAEMON_TEST(test_signals_do_not_end_the_wait_for_a_busy_daemon),
		DAEMON_TEST(test_daemon_of_another_user_is_refused),
		DAEMON_TEST(test_refused_client_learns_the_reason),
		DAEMON_TEST(test_version_check_still_permits_hello),
		DAEMON_TEST(test_daemon_of_another_version_is_refused),
		DAEMON_TEST(test_client_that_forks_keeps_its_nic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
