/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages that our client never sends: this process plays both sides of the attachment. */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <vnic/peer_socket.h>

#include "daemon.h"
#include "send_fds.h"
#include "vnic_loop.h"

static int connect_raw(struct daemon *d)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/" VNIC_SOCKET_NAME, d->run_dir);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	accept_client(d);
	return fd;
}

static void drop_client(struct daemon *d, int fd)
{
	close(fd);
	close(vnic_server_close(d->client));
	d->client = NULL;
}

static void send_raw(int fd, const void *data, size_t len)
{
	assert_int_equal(send(fd, data, len, 0), len);
}

static void say_hello(struct daemon *d, int fd)
{
	const struct vnic_attach_hello hello = {VNIC_ATTACH_HELLO, VNIC_ATTACH_VERSION};
	struct vnic_attach_welcome w;

	send_raw(fd, &hello, sizeof(hello));
	assert_int_equal(vnic_server_event(d->client, &ops, d), 0);
	/* recv(2) accepts no descriptors: the kernel closes those of the answer. */
	assert_int_equal(recv(fd, &w, sizeof(w), 0), sizeof(w));
	assert_int_equal(w.status, 0);
}

static void test_malformed_messages_end_the_connection(void **state)
{
	static const struct {
		uint32_t words[16];
		size_t len;
		bool greeted;
	} cases[] = {
		{{VNIC_ATTACH_HELLO}, 2, false},
		{{VNIC_ATTACH_HELLO}, 4, false},
		{{VNIC_ATTACH_HELLO, VNIC_ATTACH_VERSION},
		 sizeof(struct vnic_attach_hello) + 4,
		 false},
		{{0}, 8, false},
		{{99}, 8, false},
		{{UINT32_MAX}, 8, false},
		{{VNIC_ATTACH_MEMORY}, sizeof(struct vnic_attach_memory), false},
		{{VNIC_ATTACH_REG}, sizeof(struct vnic_attach_reg), true}, /* before MEMORY */
		{{VNIC_ATTACH_RESOLVE}, sizeof(struct vnic_attach_resolve), false},
		{{VNIC_ATTACH_REGISTER}, sizeof(struct vnic_attach_remote), false},
		{{VNIC_ATTACH_UNREGISTER}, sizeof(struct vnic_attach_remote), false},
		{{VNIC_ATTACH_LEASE}, sizeof(struct vnic_attach_lease), false},
		{{VNIC_ATTACH_QPN_ADD}, sizeof(struct vnic_attach_qpn), false},
		{{VNIC_ATTACH_QPN_SET}, sizeof(struct vnic_attach_qpn), false},
		{{VNIC_ATTACH_QPN_REMOVE}, sizeof(struct vnic_attach_qpn), false},
		{{VNIC_ATTACH_QPN_QUERY}, sizeof(struct vnic_attach_qpn), false},
		{{VNIC_ATTACH_HELLO, VNIC_ATTACH_VERSION}, sizeof(struct vnic_attach_hello), true},
	};
	struct daemon *d = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int fd = connect_raw(d);

		if (cases[i].greeted)
			say_hello(d, fd);
		send_raw(fd, cases[i].words, cases[i].len);
		assert_int_equal(vnic_server_event(d->client, &ops, d), -EPROTO);
		drop_client(d, fd);
	}
}

/*
 * The daemon may answer HELLO later; a client that sends another message meanwhile violates the
 * protocol.
 */
static void test_message_before_the_welcome_is_refused(void **state)
{
	const struct vnic_attach_hello hello = {VNIC_ATTACH_HELLO, VNIC_ATTACH_VERSION, 0x1234,
						8192};
	struct vnic_attach_welcome w = {.mtu = MTU, .qpn_first = 8192, .qpn_count = 4096};
	struct daemon *d = *state;
	int fd = connect_raw(d);

	d->refuse = -EINPROGRESS;
	send_raw(fd, &hello, sizeof(hello));
	assert_int_equal(vnic_server_event(d->client, &ops, d), 0);
	assert_int_equal(d->hello.token, 0x1234);
	assert_int_equal(d->hello.qpn_first, 8192);
	assert_int_equal(recv(fd, &w, sizeof(w), MSG_DONTWAIT), -1);
	assert_int_equal(vnic_server_welcome(d->client, 0, &w), 0);
	memset(&w, 0, sizeof(w));
	assert_int_equal(recv(fd, &w, sizeof(w), 0), sizeof(w));
	assert_int_equal(w.status, 0);
	assert_int_equal(w.qpn_first, 8192);
	assert_int_equal(vnic_server_welcome(d->client, 0, &w), -EINVAL);
	drop_client(d, fd);

	fd = connect_raw(d);
	send_raw(fd, &hello, sizeof(hello));
	assert_int_equal(vnic_server_event(d->client, &ops, d), 0);
	send_raw(fd, &hello, sizeof(hello));
	assert_int_equal(vnic_server_event(d->client, &ops, d), -EPROTO);
	drop_client(d, fd);
}

static void test_oversized_message_is_refused(void **state)
{
	static const uint8_t huge[65536] = {VNIC_ATTACH_HELLO};
	struct daemon *d = *state;
	int fd = connect_raw(d);

	send_raw(fd, huge, sizeof(huge));
	assert_int_equal(vnic_server_event(d->client, &ops, d), -EPROTO);
	drop_client(d, fd);
}

/* Sends a message with a descriptor. False: the kernel refuses it. */
static bool send_with_fd(int fd, const void *data, size_t len, int passed)
{
	if (send_fds(fd, data, len, &passed, 1) == (ssize_t)len)
		return true;
	assert_int_equal(errno, EPERM);
	return false;
}

/* Linux 6.16 refuses the message; on older kernels it stays in the queue, with its descriptor. */
static void test_message_with_a_descriptor_is_refused(void **state)
{
	const struct vnic_attach_hello hello = {VNIC_ATTACH_HELLO, VNIC_ATTACH_VERSION};
	struct daemon *d = *state;
	int fd = connect_raw(d);

	if (send_with_fd(fd, &hello, sizeof(hello), fd)) {
		assert_int_equal(vnic_server_event(d->client, &ops, d), -EPERM);
		assert_int_equal(vnic_server_event(d->client, &ops, d), -EPERM);
		assert_false(vnic_peer_shut(vnic_server_fd(d->client)));
	}
	drop_client(d, fd);
}

/* --- Sockets for which the kernel refuses nothing, as all are before Linux 6.16 */

static void open_old_pair(int ends[2])
{
	/* A pair is no listening socket: the functions take the path for old kernels. */
	vnic_peer_refuse_fds(-1);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
}

/* A pipe's write end as the descriptor shows when its last copy is closed. */
static bool is_held(int reader)
{
	struct pollfd pfd = {.fd = reader};

	return poll(&pfd, 1, 0) == 0;
}

static void test_look_closes_nothing(void **state)
{
	int ends[2], pipe_ends[2];
	uint32_t word = 7;

	(void)state;
	open_old_pair(ends);
	assert_int_equal(pipe(pipe_ends), 0);
	assert_int_equal(send(ends[1], &word, sizeof(word), 0), sizeof(word));
	assert_true(send_with_fd(ends[1], "x", 1, pipe_ends[1]));
	close(pipe_ends[1]);
	assert_int_equal(vnic_peer_recv(ends[0], &word, sizeof(word)), sizeof(word));
	for (int i = 0; i < 3; i++)
		assert_int_equal(vnic_peer_recv(ends[0], &word, sizeof(word)), -EPERM);
	assert_false(vnic_peer_shut(ends[0]));
	assert_true(is_held(pipe_ends[0]));
	close(ends[0]);
	assert_false(is_held(pipe_ends[0]));
	close(ends[1]);
	close(pipe_ends[0]);
}

/* Messages without descriptors go, empty ones too; one with a descriptor behind them is found. */
static void test_queue_is_emptied(void **state)
{
	for (int with_fd = 0; with_fd < 2; with_fd++) {
		int ends[2];

		(void)state;
		open_old_pair(ends);
		for (int i = 0; i < 20; i++)
			assert_int_equal(send(ends[1], "abc", (size_t)i % 3, 0), i % 3);
		if (with_fd)
			assert_true(send_with_fd(ends[1], "", 0, ends[1]));
		assert_int_equal(vnic_peer_shut(ends[0]), !with_fd);
		assert_int_equal(send(ends[1], "x", 1, MSG_NOSIGNAL), -1);
		close(ends[0]);
		close(ends[1]);
	}
}

static void test_message_of_another_length_is_refused(void **state)
{
	uint32_t words[2] = {1, 2}, word;
	int ends[2];

	(void)state;
	open_old_pair(ends);
	assert_int_equal(vnic_peer_recv(ends[0], &word, sizeof(word)), -EAGAIN);
	assert_int_equal(send(ends[1], words, sizeof(words), 0), sizeof(words));
	assert_int_equal(vnic_peer_recv(ends[0], &word, sizeof(word)), -EPROTO);
	assert_int_equal(vnic_peer_recv(ends[0], &word, sizeof(word)), -EAGAIN);
	close(ends[1]);
	assert_int_equal(vnic_peer_recv(ends[0], &word, sizeof(word)), 0);
	assert_true(vnic_peer_shut(ends[0]));
	close(ends[0]);
}

/* A HELLO of another version gets an answer with that reason, whatever else is wrong. */
static void test_hello_of_another_version_gets_the_reason(void **state)
{
	const struct {
		struct vnic_attach_hello hello;
		uint8_t more[64];
	} text = {.hello = {VNIC_ATTACH_HELLO, VNIC_ATTACH_VERSION + 1}};
	const size_t lens[] = {8, 12, sizeof(text.hello), sizeof(text)};
	struct vnic_attach_welcome w;
	struct daemon *d = *state;

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		int fd = connect_raw(d);

		send_raw(fd, &text, lens[i]);
		assert_int_equal(vnic_server_event(d->client, &ops, d), 0);
		assert_int_equal(recv(fd, &w, sizeof(w), 0), sizeof(w));
		assert_int_equal(w.type, VNIC_ATTACH_HELLO);
		assert_int_equal(w.status, -EPROTO);
		drop_client(d, fd);
	}
}

/* Receives a message and its only descriptor; -1: it has none. */
static int receive_fd(int fd, void *message, size_t len)
{
	union {
		struct cmsghdr header;
		uint8_t room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = message, .iov_len = len};
	struct msghdr header = {.msg_iov = &iov,
				.msg_iovlen = 1,
				.msg_control = &control,
				.msg_controllen = sizeof(control)};
	int got;

	assert_int_equal(recvmsg(fd, &header, MSG_CMSG_CLOEXEC), len);
	if (!CMSG_FIRSTHDR(&header))
		return -1;
	memcpy(&got, CMSG_DATA(&control.header), sizeof(got));
	return got;
}

/* The answer's descriptor, or a negative errno value. */
static int ask_memory(struct daemon *d, int fd, uint64_t size)
{
	struct vnic_attach_memory message = {.type = VNIC_ATTACH_MEMORY, .size = size};
	int memory;

	send_raw(fd, &message, sizeof(message));
	assert_int_equal(vnic_server_event(d->client, &ops, d), 0);
	memory = receive_fd(fd, &message, sizeof(message));
	assert_int_equal(memory < 0, message.status < 0);
	return message.status ? message.status : memory;
}

/* The daemon makes the memory: no client can change its size. */
static void test_client_cannot_resize_its_memory(void **state)
{
	const uint64_t size = 1 << 20;
	struct daemon *d = *state;
	int fd = connect_raw(d), memory;
	struct stat st;

	say_hello(d, fd);
	assert_int_equal(ask_memory(d, fd, 0), -EINVAL);
	assert_int_equal(ask_memory(d, fd, 1ull << 40), -EINVAL);
	assert_null(vnic_server_device(d->client));
	memory = ask_memory(d, fd, size);
	assert_true(memory >= 0);
	assert_non_null(vnic_server_device(d->client));
	assert_int_equal(fstat(memory, &st), 0);
	assert_int_equal(st.st_size, size);
	assert_int_equal(ftruncate(memory, 0), -1);
	assert_int_equal(ftruncate(memory, (off_t)size * 2), -1);
	assert_int_equal(fcntl(memory, F_ADD_SEALS, F_SEAL_WRITE), -1);
	close(memory);
	drop_client(d, fd);
}

static void test_second_memory_request_is_refused(void **state)
{
	const struct vnic_attach_memory message = {.type = VNIC_ATTACH_MEMORY, .size = 4096};
	struct daemon *d = *state;
	int fd = connect_raw(d);

	say_hello(d, fd);
	close(ask_memory(d, fd, 4096));
	send_raw(fd, &message, sizeof(message));
	assert_int_equal(vnic_server_event(d->client, &ops, d), -EPROTO);
	drop_client(d, fd);
}

/* One page: no shared area with rings fits into it. */
static void test_memory_of_one_page_activates_no_nic(void **state)
{
	struct vnic_attach_reg reg = {.type = VNIC_ATTACH_REG, .bar = 1, .write = 1};
	struct daemon *d = *state;
	int fd = connect_raw(d);

	say_hello(d, fd);
	close(ask_memory(d, fd, 4096));
	reg.offset = VMXNET3_REG_DSAL;
	reg.value = 4000;
	send_raw(fd, &reg, sizeof(reg));
	assert_int_equal(vnic_server_event(d->client, &ops, d), 0);
	assert_int_equal(recv(fd, &reg, sizeof(reg), 0), sizeof(reg));
	reg.offset = VMXNET3_REG_CMD;
	reg.value = (uint32_t)VMXNET3_CMD_ACTIVATE_DEV;
	send_raw(fd, &reg, sizeof(reg));
	assert_int_equal(vnic_server_event(d->client, &ops, d), 0);
	assert_int_equal(vnic_device_state(vnic_server_device(d->client)), VNIC_DEVICE_DOWN);
	/* An unknown register gets an answer; the connection stays. */
	assert_int_equal(recv(fd, &reg, sizeof(reg), 0), sizeof(reg));
	reg.offset = 0xfffffffc;
	send_raw(fd, &reg, sizeof(reg));
	assert_int_equal(vnic_server_event(d->client, &ops, d), 0);
	assert_int_equal(recv(fd, &reg, sizeof(reg), 0), sizeof(reg));
	assert_int_equal(reg.status, -EINVAL);
	drop_client(d, fd);
}

/* --- INBOX */

static int ask_inbox(struct daemon *d, int fd, uint32_t exists)
{
	struct vnic_attach_inbox message = {.type = VNIC_ATTACH_INBOX, .exists = exists};

	send_raw(fd, &message, sizeof(message));
	assert_int_equal(vnic_server_event(d->client, &ops, d), 0);
	assert_int_equal(recv(fd, &message, sizeof(message), 0), sizeof(message));
	return message.status;
}

static void attach_raw(struct daemon *d, int *fd)
{
	*fd = connect_raw(d);
	say_hello(d, *fd);
	close(ask_memory(d, *fd, 4096));
}

static void test_inbox_is_asked_once_and_after_memory(void **state)
{
	const struct vnic_attach_inbox message = {.type = VNIC_ATTACH_INBOX};
	struct daemon *d = *state;
	int fd;

	attach_raw(d, &fd);
	assert_int_equal(ask_inbox(d, fd, 0), 0);
	send_raw(fd, &message, sizeof(message));
	assert_int_equal(vnic_server_event(d->client, &ops, d), -EPROTO);
	drop_client(d, fd);
	fd = connect_raw(d);
	say_hello(d, fd);
	/* Before MEMORY. */
	send_raw(fd, &message, sizeof(message));
	assert_int_equal(vnic_server_event(d->client, &ops, d), -EPROTO);
	drop_client(d, fd);
}

/* An inbox of an earlier daemon comes by way of the process that checks it. */
static void test_inbox_of_an_earlier_daemon_is_taken_once(void **state)
{
	struct daemon *d = *state;
	struct vnic_inbox *inbox;
	int fds[VNIC_INBOX_FDS], fd;

	assert_int_equal(vnic_inbox_create(MTU, &inbox), 0);
	vnic_inbox_fds(inbox, fds);
	for (int i = 0; i < VNIC_INBOX_FDS; i++)
		fds[i] = dup(fds[i]);
	attach_raw(d, &fd);
	/* This server has no check_inbox. */
	assert_int_equal(ask_inbox(d, fd, 1), -EOPNOTSUPP);
	assert_int_equal(vnic_server_inbox_holder(d->client), 0);
	assert_int_equal(vnic_server_take_inbox(d->client, fds), 0);
	vnic_inbox_fds(inbox, fds);
	for (int i = 0; i < VNIC_INBOX_FDS; i++)
		fds[i] = dup(fds[i]);
	assert_int_equal(vnic_server_take_inbox(d->client, fds), -EINVAL);
	assert_int_equal(fcntl(fds[0], F_GETFD), -1);
	drop_client(d, fd);
	vnic_inbox_destroy(inbox);
}

/* The daemon drops a client that sends and never reads the answers; it does not wait. */
static void test_client_that_never_reads_is_dropped(void **state)
{
	struct vnic_attach_reg reg = {.type = VNIC_ATTACH_REG, .bar = 1};
	struct daemon *d = *state;
	int fd = connect_raw(d), ret = 0;

	say_hello(d, fd);
	close(ask_memory(d, fd, 4096));
	for (uint32_t i = 0; i < 100000 && !ret; i++) {
		send_raw(fd, &reg, sizeof(reg));
		ret = vnic_server_event(d->client, &ops, d);
	}
	assert_int_equal(ret, -EPROTO);
	drop_client(d, fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DAEMON_TEST(test_malformed_messages_end_the_connection),
		DAEMON_TEST(test_message_before_the_welcome_is_refused),
		DAEMON_TEST(test_oversized_message_is_refused),
		DAEMON_TEST(test_message_with_a_descriptor_is_refused),
		cmocka_unit_test(test_look_closes_nothing),
		cmocka_unit_test(test_queue_is_emptied),
		cmocka_unit_test(test_message_of_another_length_is_refused),
		DAEMON_TEST(test_hello_of_another_version_gets_the_reason),
		DAEMON_TEST(test_client_cannot_resize_its_memory),
		DAEMON_TEST(test_second_memory_request_is_refused),
		DAEMON_TEST(test_memory_of_one_page_activates_no_nic),
		DAEMON_TEST(test_inbox_is_asked_once_and_after_memory),
		DAEMON_TEST(test_inbox_of_an_earlier_daemon_is_taken_once),
		DAEMON_TEST(test_client_that_never_reads_is_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
