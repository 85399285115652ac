/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages that our client never sends: this process plays both sides of the attachment. */
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "daemon.h"

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
	vnic_server_close(d->client);
	d->client = NULL;
}

static void send_raw(int fd, const void *data, size_t len, int passed)
{
	union {
		struct cmsghdr header;
		uint8_t room[CMSG_SPACE(sizeof(int))];
	} control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
				.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS}};
	struct iovec iov = {.iov_base = (void *)data, .iov_len = len};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};

	if (passed >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		memcpy(CMSG_DATA(&control.header), &passed, sizeof(passed));
	}
	assert_int_equal(sendmsg(fd, &message, 0), len);
}

static void say_hello(struct daemon *d, int fd)
{
	const struct vnic_attach_hello hello = {VNIC_ATTACH_HELLO, VNIC_ATTACH_VERSION};
	struct vnic_attach_welcome w;

	send_raw(fd, &hello, sizeof(hello), -1);
	assert_int_equal(vnic_server_event(d->client, &ops, d), 0);
	/* recv(2) accepts no descriptors: the kernel closes those in the message. */
	assert_int_equal(recv(fd, &w, sizeof(w), 0), sizeof(w));
	assert_int_equal(w.status, 0);
}

static void test_malformed(void **state)
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
		{{VNIC_ATTACH_MEMORY}, sizeof(struct vnic_attach_memory), true}, /* no descriptor */
		{{VNIC_ATTACH_REG}, sizeof(struct vnic_attach_reg), true},       /* before MEMORY */
		{{VNIC_ATTACH_RESOLVE}, sizeof(struct vnic_attach_resolve), false},
		{{VNIC_ATTACH_REGISTER}, sizeof(struct vnic_attach_remote), false},
		{{VNIC_ATTACH_UNREGISTER}, sizeof(struct vnic_attach_remote), false},
		{{VNIC_ATTACH_LEASE}, sizeof(struct vnic_attach_lease), false},
		{{VNIC_ATTACH_HELLO, VNIC_ATTACH_VERSION}, sizeof(struct vnic_attach_hello), true},
	};
	struct daemon *d = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int fd = connect_raw(d);

		if (cases[i].greeted)
			say_hello(d, fd);
		send_raw(fd, cases[i].words, cases[i].len, -1);
		assert_int_equal(vnic_server_event(d->client, &ops, d), -EPROTO);
		drop_client(d, fd);
	}
}

/*
 * The daemon may answer HELLO later; a client that sends another message meanwhile violates the
 * protocol.
 */
static void test_late_welcome(void **state)
{
	const struct vnic_attach_hello hello = {VNIC_ATTACH_HELLO, VNIC_ATTACH_VERSION, 0x1234,
						8192};
	struct vnic_attach_welcome w = {.mtu = MTU, .qpn_first = 8192, .qpn_count = 4096};
	struct daemon *d = *state;
	int fd = connect_raw(d);

	d->refuse = -EINPROGRESS;
	send_raw(fd, &hello, sizeof(hello), -1);
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
	send_raw(fd, &hello, sizeof(hello), -1);
	assert_int_equal(vnic_server_event(d->client, &ops, d), 0);
	send_raw(fd, &hello, sizeof(hello), -1);
	assert_int_equal(vnic_server_event(d->client, &ops, d), -EPROTO);
	drop_client(d, fd);
}

static void test_oversized_message(void **state)
{
	static const uint8_t huge[65536] = {VNIC_ATTACH_HELLO};
	struct daemon *d = *state;
	int fd = connect_raw(d);

	send_raw(fd, huge, sizeof(huge), -1);
	assert_int_equal(vnic_server_event(d->client, &ops, d), -EPROTO);
	drop_client(d, fd);
}

/* The kernel drops a descriptor that the receiver does not expect. */
static void test_unwanted_descriptor(void **state)
{
	const struct vnic_attach_hello hello = {VNIC_ATTACH_HELLO, VNIC_ATTACH_VERSION};
	struct daemon *d = *state;
	int fd = connect_raw(d);

	send_raw(fd, &hello, sizeof(hello), fd);
	assert_int_equal(vnic_server_event(d->client, &ops, d), -EPROTO);
	drop_client(d, fd);
}

/* A HELLO of another version gets an answer with that reason, whatever else is wrong. */
static void test_other_version(void **state)
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

		send_raw(fd, &text, lens[i], -1);
		assert_int_equal(vnic_server_event(d->client, &ops, d), 0);
		assert_int_equal(recv(fd, &w, sizeof(w), 0), sizeof(w));
		assert_int_equal(w.type, VNIC_ATTACH_HELLO);
		assert_int_equal(w.status, -EPROTO);
		drop_client(d, fd);
	}
}

static int memory_with(uint64_t size, unsigned int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	if (seals)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static int offer_memory(struct daemon *d, int fd, int memory, uint64_t size)
{
	struct vnic_attach_memory message = {.type = VNIC_ATTACH_MEMORY, .size = size};

	send_raw(fd, &message, sizeof(message), memory);
	assert_int_equal(vnic_server_event(d->client, &ops, d), 0);
	assert_int_equal(recv(fd, &message, sizeof(message), 0), sizeof(message));
	if (memory >= 0)
		close(memory);
	return message.status;
}

static void test_memory_refused(void **state)
{
	const uint64_t size = 1 << 20;
	struct daemon *d = *state;
	int fd = connect_raw(d);
	int ends[2];

	say_hello(d, fd);
	assert_int_equal(offer_memory(d, fd, memory_with(size, 0), size), -EPERM);
	assert_int_equal(offer_memory(d, fd, memory_with(size, F_SEAL_GROW), size), -EPERM);
	assert_int_equal(offer_memory(d, fd, memory_with(size, F_SEAL_SHRINK | F_SEAL_WRITE), size),
			 -EPERM);
	assert_int_equal(offer_memory(d, fd, memory_with(size, F_SEAL_SHRINK), size + 4096),
			 -EINVAL);
	assert_int_equal(offer_memory(d, fd, memory_with(size, F_SEAL_SHRINK), size - 4096),
			 -EINVAL);
	assert_int_equal(offer_memory(d, fd, memory_with(0, F_SEAL_SHRINK), 0), -EINVAL);
	assert_int_equal(offer_memory(d, fd, memory_with(1ull << 40, F_SEAL_SHRINK), 1ull << 40),
			 -EINVAL);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(offer_memory(d, fd, ends[0], size), -EPERM);
	close(ends[1]);
	assert_null(vnic_server_device(d->client));
	assert_int_equal(offer_memory(d, fd, memory_with(size, F_SEAL_SHRINK), size), 0);
	assert_non_null(vnic_server_device(d->client));
	drop_client(d, fd);
}

static void test_memory_twice(void **state)
{
	const struct vnic_attach_memory message = {.type = VNIC_ATTACH_MEMORY, .size = 4096};
	struct daemon *d = *state;
	int fd = connect_raw(d), memory = memory_with(4096, F_SEAL_SHRINK);

	say_hello(d, fd);
	assert_int_equal(offer_memory(d, fd, dup(memory), 4096), 0);
	send_raw(fd, &message, sizeof(message), memory);
	assert_int_equal(vnic_server_event(d->client, &ops, d), -EPROTO);
	close(memory);
	drop_client(d, fd);
}

/* A memfd of one page: the daemon accepts it, but no shared area with rings fits into it. */
static void test_memory_too_small(void **state)
{
	struct vnic_attach_reg reg = {.type = VNIC_ATTACH_REG, .bar = 1, .write = 1};
	struct daemon *d = *state;
	int fd = connect_raw(d);

	say_hello(d, fd);
	assert_int_equal(offer_memory(d, fd, memory_with(4096, F_SEAL_SHRINK), 4096), 0);
	reg.offset = VMXNET3_REG_DSAL;
	reg.value = 4000;
	send_raw(fd, &reg, sizeof(reg), -1);
	assert_int_equal(vnic_server_event(d->client, &ops, d), 0);
	assert_int_equal(recv(fd, &reg, sizeof(reg), 0), sizeof(reg));
	reg.offset = VMXNET3_REG_CMD;
	reg.value = (uint32_t)VMXNET3_CMD_ACTIVATE_DEV;
	send_raw(fd, &reg, sizeof(reg), -1);
	assert_int_equal(vnic_server_event(d->client, &ops, d), 0);
	assert_int_equal(vnic_device_state(vnic_server_device(d->client)), VNIC_DEVICE_DOWN);
	/* An unknown register gets an answer; the connection stays. */
	assert_int_equal(recv(fd, &reg, sizeof(reg), 0), sizeof(reg));
	reg.offset = 0xfffffffc;
	send_raw(fd, &reg, sizeof(reg), -1);
	assert_int_equal(vnic_server_event(d->client, &ops, d), 0);
	assert_int_equal(recv(fd, &reg, sizeof(reg), 0), sizeof(reg));
	assert_int_equal(reg.status, -EINVAL);
	drop_client(d, fd);
}

/* The daemon drops a client that sends and never reads the answers; it does not wait. */
static void test_client_that_never_reads(void **state)
{
	struct vnic_attach_reg reg = {.type = VNIC_ATTACH_REG, .bar = 1};
	struct daemon *d = *state;
	int fd = connect_raw(d), ret = 0;

	say_hello(d, fd);
	assert_int_equal(offer_memory(d, fd, memory_with(4096, F_SEAL_SHRINK), 4096), 0);
	for (uint32_t i = 0; i < 100000 && !ret; i++) {
		send_raw(fd, &reg, sizeof(reg), -1);
		ret = vnic_server_event(d->client, &ops, d);
	}
	assert_int_equal(ret, -EPROTO);
	drop_client(d, fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DAEMON_TEST(test_malformed),
		DAEMON_TEST(test_late_welcome),
		DAEMON_TEST(test_oversized_message),
		DAEMON_TEST(test_unwanted_descriptor),
		DAEMON_TEST(test_other_version),
		DAEMON_TEST(test_memory_refused),
		DAEMON_TEST(test_memory_twice),
		DAEMON_TEST(test_memory_too_small),
		DAEMON_TEST(test_client_that_never_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
