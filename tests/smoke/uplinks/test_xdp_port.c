/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * af_xdp ports with urxe's XDP program on a veth cable: which frames the port gets, and which
 * programs it replaces. Needs root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <netdev/netdev.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cable.h"

#define ROCE_V1 0x8915
#define IPV4    0x0800

static const char *skip_reason;
static const char *program; /* the compiled XDP program; NULL = this build has none */

static int setup(void **state)
{
	(void)state;
	if (geteuid() || unshare(CLONE_NEWNET) || cable_shell("ip link set lo up 2>/dev/null"))
		skip_reason = "needs root, network namespaces and ip(8)";
	return 0;
}

static void skip_without_namespace(void)
{
	if (!skip_reason)
		return;
	print_message("skipped: %s\n", skip_reason);
	skip();
}

/* --- Frames */

/* Builds an Ethernet header, with a VLAN tag if tci is not 0, and appends `rest`. */
static uint32_t build_tagged(uint8_t *frame, uint16_t tci, uint16_t type, const uint8_t *rest,
			     uint32_t length)
{
	uint32_t header = cable_frame(frame, (uint8_t[6]){2, 0, 0, 0, 0, 1},
				      (uint8_t[6]){2, 0, 0, 0, 0, 2}, tci ? 0x8100 : type, 0, 0);

	if (tci)
		memcpy(frame + 14, (uint8_t[]){tci >> 8, tci, type >> 8, type}, 4);
	header += tci ? 4 : 0;
	memcpy(frame + header, rest, length);
	return header + length;
}

#define V4(ihl, fragment, protocol, port)                                                         \
	{                                                                                         \
		0x40 | (ihl), 0, 0, 80, 0, 0, (fragment) >> 8, (uint8_t)(fragment), 64, protocol, \
			0, 0, 192, 0, 2, 1, 192, 0, 2, 2, 0xc0, 0, (port) >> 8, (uint8_t)(port)   \
	}
#define V6(next, port)                                                                 \
	{                                                                              \
		0x60, [5] = 40, [6] = next, [7] = 64, [40] = 0xc0, [42] = (port) >> 8, \
		      [43] = (uint8_t)(port)                                           \
	}

#define ND                                                                         \
	{                                                                          \
		0x60, [5] = 24, [6] = 58, [7] = 255, [40] = 135 /* solicitation */ \
	}

static const struct xdp_case {
	const char *what;
	uint16_t type, tci;
	uint32_t length; /* without the Ethernet header */
	uint8_t rest[64];
	enum { KERNEL = 1, URXED = 2, BOTH = 3 } who; /* receives the frame */
} xdp_cases[] = {
	{"RoCEv1", ROCE_V1, 0, 64, {0}, URXED},
	{"RoCEv1 in a VLAN", ROCE_V1, 0x6007, 64, {0}, URXED},
	{"RoCEv2, IPv4", IPV4, 0, 64, V4(5, 0x4000, 17, 4791), URXED},
	{"RoCEv2, IPv4, in a VLAN", IPV4, 7, 64, V4(5, 0, 17, 4791), URXED},
	{"RoCEv2, IPv6", 0x86dd, 0, 64, V6(17, 4791), URXED},
	{"RoCEv2, IPv6, in a VLAN", 0x86dd, 7, 64, V6(17, 4791), URXED},
	{"ARP", 0x0806, 0, 64, {0}, BOTH},
	{"ARP in a VLAN", 0x0806, 7, 64, {0}, BOTH},
	{"ARP in a service VLAN", 0x88a8, 0, 64, {0, 7, 0x08, 0x06}, KERNEL},
	{"RARP", 0x8035, 0, 64, {0}, BOTH},
	{"UDP to another port", IPV4, 0, 64, V4(5, 0, 17, 4790), KERNEL},
	{"TCP to port 4791", IPV4, 0, 64, V4(5, 0, 6, 4791), KERNEL},
	{"IPv4 options", IPV4, 0, 64, V4(6, 0, 17, 4791), KERNEL},
	{"a first fragment", IPV4, 0, 64, V4(5, 0x2000, 17, 4791), KERNEL},
	{"a later fragment", IPV4, 0, 64, V4(5, 0x0001, 17, 4791), KERNEL},
	{"an IPv4 header cut off", IPV4, 0, 27, V4(5, 0, 17, 4791), KERNEL},
	{"neighbour discovery", 0x86dd, 0, 64, ND, BOTH},
	{"neighbour discovery in a VLAN", 0x86dd, 7, 64, ND, BOTH},
	{"an echo request",
	 0x86dd,
	 0,
	 64,
	 {0x60, [5] = 24, [6] = 58, [7] = 64, [40] = 128},
	 KERNEL},
	{"IPv6 with hop-by-hop options", 0x86dd, 0, 64, V6(0, 4791), KERNEL},
	{"an IPv6 header cut off", 0x86dd, 0, 47, V6(17, 4791), KERNEL},
	{"two tags", 0x8100, 7, 64, {0, 8, ROCE_V1 >> 8, ROCE_V1 & 0xff}, KERNEL},
	{"a frame of nothing", ROCE_V1, 0, 0, {0}, KERNEL},
};

/* Whether the kernel received the frame. The kernel reports the VLAN tag beside the bytes. */
static bool kernel_received(int fd, const uint8_t *frame, uint32_t length, uint32_t tag)
{
	struct pollfd wait = {fd, POLLIN, 0};
	uint8_t got[256];
	ssize_t n;

	while (poll(&wait, 1, 200) > 0)
		while ((n = recv(fd, got, sizeof(got), 0)) > 0)
			if ((uint32_t)n == length - tag && !memcmp(got, frame, 12) &&
			    !memcmp(got + 12, frame + 12 + tag, length - 12 - tag))
				return true;
	return false;
}

static void check_xdp_case(struct netdev *port, int sender, int kernel, const struct xdp_case *c)
{
	struct pollfd wait = {netdev_wait_fd(port), POLLIN, 0};
	uint8_t sent[256];
	uint32_t length = build_tagged(sent, c->tci, c->type, c->rest, c->length);
	uint32_t tag = c->tci || c->type == 0x88a8 ? 4 : 0;
	struct netdev_frame got;
	bool ours = c->who & URXED;

	assert_int_equal(send(sender, sent, length, 0), length);
	if (kernel_received(kernel, sent, length, tag) != !!(c->who & KERNEL))
		fail_msg("%s: the kernel %s it", c->what,
			 c->who & KERNEL ? "does not have" : "has");
	if ((poll(&wait, 1, 0) == 1) != ours)
		fail_msg("%s: urxed %s it", c->what, ours ? "sleeps through" : "is woken by");
	if (netdev_rx(port, 0, &got, 1) != ours)
		fail_msg("%s: urxed %s it", c->what, ours ? "does not get" : "gets");
	if (ours) {
		assert_int_equal(got.len, length);
		assert_memory_equal(got.data, sent, length);
	}
	assert_int_equal(netdev_rx(port, 0, &got, 1), 0);
}

/* An af_xdp port on one end of a new cable, "xa"; the other end is "xb". */
static struct netdev *open_xdp(void)
{
	char spec[512], error[512];
	struct netdev *port;

	if (!program ||
	    cable_shell("ip link add xa type veth peer name xb && "
			"ip link set xa addrgenmode none && ip link set xb addrgenmode none && "
			"ip link set xa up && ip link set xb up")) {
		print_message("skipped: needs a compiler for BPF\n");
		skip();
	}
	snprintf(spec, sizeof(spec), "af_xdp:xa,xdp_prog=%s", program);
	if (netdev_dpdk_open(spec, 0, &port, error, sizeof(error)))
		fail_msg("%s", error);
	return port;
}

/*
 * RoCE frames go to the port, and all others to the kernel. ARP and neighbour discovery go to both,
 * because both have addresses.
 */
static void test_af_xdp_separates_roce_from_other_frames(void **state)
{
	uint8_t sent[128], back[128];
	struct netdev *port;
	int sender, kernel;
	uint32_t length;

	(void)state;
	skip_without_namespace();
	port = open_xdp();
	assert_int_equal(netdev_mtu(port), 1500);
	sender = cable_socket("xb");
	kernel = cable_socket("xa");
	for (size_t i = 0; i < sizeof(xdp_cases) / sizeof(xdp_cases[0]); i++)
		check_xdp_case(port, sender, kernel, &xdp_cases[i]);
	length = build_tagged(sent, 0, ROCE_V1, xdp_cases[2].rest, 64);
	cable_send(port, sent, length);
	for (int wait = 0;
	     recv(sender, back, sizeof(back), 0) != length || memcmp(back, sent, length); wait++) {
		assert_true(wait < CABLE_PATIENCE_MS);
		usleep(1000);
	}
	close(sender);
	close(kernel);
	netdev_close(port);
	assert_int_equal(cable_shell("ip -d link show xa | grep -q xdp"), 256);
	cable_shell("ip link delete xa");
}

/* Sends until the frame arrives; the kernel notices a link somewhat later. */
static bool receives_from(struct netdev *port, uint64_t now, int far, const uint8_t *sent,
			  uint32_t length)
{
	struct netdev_frame got;

	for (int i = 0; i < CABLE_PATIENCE_MS / 10; i++) {
		assert_int_equal(send(far, sent, length, 0), length);
		if (netdev_rx(port, now + 2000000 * i, &got, 1))
			return true;
		usleep(10000);
	}
	return false;
}

/* The kernel keeps the frames, and with them more buffers than the rings leave. */
static void test_af_xdp_goes_on_after_the_interface_was_down(void **state)
{
	struct netdev *port;
	uint8_t sent[128], got[128];
	uint32_t length;
	int far;

	(void)state;
	skip_without_namespace();
	port = open_xdp();
	far = cable_socket("xb");
	netdev_wait_fd(port);
	length = build_tagged(sent, 0, ROCE_V1, xdp_cases[2].rest, 64);
	assert_int_equal(cable_shell("ip link set xa down"), 0);
	for (uint32_t i = 0; i < 2000; i++)
		netdev_tx(port, 0, &(struct netdev_frame){sent, length}, 1);
	assert_int_equal(cable_shell("ip link set xa up"), 0);
	for (uint64_t i = 0; i < 3000; i++)
		assert_true(receives_from(port, i, far, sent, length));
	while (recv(far, got, sizeof(got), 0) > 0)
		;
	cable_send(port, sent, length);
	assert_int_equal(recv(far, got, sizeof(got), 0), length);
	close(far);
	netdev_close(port);
	cable_shell("ip link delete xa");
}

/* The port's program at the kernel's own hook gets UDP GSO runs whole. */
static void test_runs_to_machines_are_cut(void **state)
{
	static const uint8_t machine[6] = {2, 0, 0, 0, 0, 0x77};
	struct netdev *port;

	(void)state;
	skip_without_namespace();
	port = open_xdp();
	assert_int_equal(netdev_set_promiscuous(port, true), 0);
	if (!cable_send_run("xb", machine, 4, 1000))
		cable_skip("packet sockets send no UDP GSO packets before Linux 6.2");
	cable_expect_run(port, machine, 4, 1000);
	assert_true(cable_send_run("xb", machine, 4, 100));
	cable_expect_run(port, machine, 4, 100);
	netdev_close(port);
	cable_shell("ip link delete xa");
}

/* RoCE to another MAC of the host, as that of a bond, does not take the machines' way. */
static void test_added_mac_is_the_hosts(void **state)
{
	struct xdp_case c = {"RoCE to an added MAC", IPV4, 0, 64, V4(5, 0, 17, 4791), URXED};
	struct netdev *port;
	int sender, kernel;

	(void)state;
	skip_without_namespace();
	port = open_xdp();
	sender = cable_socket("xb");
	kernel = cable_socket("xa");
	assert_int_equal(netdev_set_promiscuous(port, true), 0);
	assert_int_equal(netdev_add_mac(port, (uint8_t[6]){2, 0, 0, 0, 0, 1}), 0);
	check_xdp_case(port, sender, kernel, &c);
	assert_int_equal(netdev_set_promiscuous(port, false), 0);
	check_xdp_case(port, sender, kernel, &c);
	close(sender);
	close(kernel);
	netdev_close(port);
	cable_shell("ip link delete xa");
}

/* --- A driver of a NIC with zero copy */

static bool waited; /* poll(2) was called with a time to wait */

/* Instead of libc's function, also in DPDK's driver. */
int poll(struct pollfd *fds, nfds_t n, int timeout)
{
	const struct timespec time = {timeout / 1000, timeout % 1000 * 1000000L};

	waited |= timeout != 0;
	return ppoll(fds, n, timeout < 0 ? NULL : &time, NULL);
}

static int socket_option(int fd, int option)
{
	int value = -1;
	socklen_t length = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, option, &value, &length) ? -1 : value;
}

/* The port's AF_XDP socket. */
static int xdp_socket(void)
{
	for (int fd = 1023; fd >= 0; fd--)
		if (socket_option(fd, SO_DOMAIN) == AF_XDP)
			return fd;
	fail_msg("the port has no AF_XDP socket");
	return -1;
}

/* Demands a system call in the ring of free buffers, as a NIC's driver that lacks buffers does.
 * False: Linux before 6.4 does not map the ring twice. */
static bool demand_wakeup(int fd)
{
	struct xdp_mmap_offsets at;
	socklen_t length = sizeof(at);
	uint8_t *ring;

	assert_int_equal(getsockopt(fd, SOL_XDP, XDP_MMAP_OFFSETS, &at, &length), 0);
	ring = mmap(NULL, at.fr.desc, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    XDP_UMEM_PGOFF_FILL_RING);
	if (ring == MAP_FAILED)
		return false;
	*(uint32_t *)(ring + at.fr.flags) |= XDP_RING_NEED_WAKEUP;
	munmap(ring, at.fr.desc);
	return true;
}

/* The daemon's thread serves others, too. */
static void test_af_xdp_without_frames_does_not_wait(void **state)
{
	struct netdev_frame frame;
	struct netdev *port;
	bool demanded;

	(void)state;
	skip_without_namespace();
	port = open_xdp();
	demanded = demand_wakeup(xdp_socket());
	waited = false;
	assert_int_equal(netdev_rx(port, 0, &frame, 1), 0);
	assert_false(waited);
	netdev_close(port);
	cable_shell("ip link delete xa");
	if (!demanded)
		cable_skip("Linux before 6.4 maps the ring only once");
}

/* A NIC with busy polling would raise no interrupts, and the port could not sleep. */
static void test_af_xdp_does_no_busy_polling(void **state)
{
	struct netdev *port;
	int fd;

	(void)state;
	skip_without_namespace();
	port = open_xdp();
	fd = xdp_socket();
	assert_int_not_equal(socket_option(fd, SO_PREFER_BUSY_POLL), 1);
	assert_int_equal(socket_option(fd, SO_BUSY_POLL), 0);
	netdev_close(port);
	cable_shell("ip link delete xa");
}

/* --- Descriptors */

static uint32_t count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	uint32_t n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void open_and_close(void)
{
	netdev_close(open_xdp());
	cable_shell("ip link delete xa");
}

/* The daemon opens the port again whenever the interface is new. */
static void test_af_xdp_leaves_no_descriptor(void **state)
{
	uint32_t before;

	(void)state;
	skip_without_namespace();
	open_and_close(); /* DPDK keeps some descriptors of the process's first port */
	before = count_descriptors();
	open_and_close();
	assert_int_equal(count_descriptors(), before);
}

#define CHUNK 4096

/* Gives the interface's queue an AF_XDP socket. */
static int occupy_queue(const char *iface)
{
	static uint8_t memory[CHUNK] __attribute__((aligned(CHUNK)));
	const struct xdp_umem_reg umem = {
		.addr = (uintptr_t)memory, .len = CHUNK, .chunk_size = CHUNK};
	const struct sockaddr_xdp address = {.sxdp_family = AF_XDP,
					     .sxdp_ifindex = if_nametoindex(iface)};
	int fd = socket(AF_XDP, SOCK_RAW, 0), n = 1;

	assert_int_equal(setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &umem, sizeof(umem)), 0);
	assert_int_equal(setsockopt(fd, SOL_XDP, XDP_UMEM_FILL_RING, &n, sizeof(n)), 0);
	assert_int_equal(setsockopt(fd, SOL_XDP, XDP_UMEM_COMPLETION_RING, &n, sizeof(n)), 0);
	assert_int_equal(setsockopt(fd, SOL_XDP, XDP_RX_RING, &n, sizeof(n)), 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

/* The daemon repeats an attempt that has failed. */
static void test_failed_start_leaves_no_descriptor(void **state)
{
	char spec[512], error[512];
	struct netdev *port;
	uint32_t before;
	int occupant;

	(void)state;
	skip_without_namespace();
	open_and_close();
	assert_int_equal(cable_shell("ip link add xg type veth peer name xh && ip link set xg up"),
			 0);
	snprintf(spec, sizeof(spec), "af_xdp:xg,xdp_prog=%s", program);
	occupant = occupy_queue("xg");
	before = count_descriptors();
	assert_true(netdev_dpdk_open(spec, 0, &port, error, sizeof(error)) < 0);
	assert_int_equal(count_descriptors(), before);
	close(occupant);
	cable_shell("ip link delete xg");
}

/* --- Programs */

/* The state after a port's process was killed: the XDP program is attached, its map has no socket.
 */
static void abandon_xdp_program(const char *iface, uint32_t flags)
{
	struct bpf_object *object = bpf_object__open_file(program, NULL);

	assert_non_null(object);
	assert_int_equal(bpf_object__load(object), 0);
	assert_int_equal(bpf_xdp_attach((int)if_nametoindex(iface),
					bpf_program__fd(bpf_object__next_program(object, NULL)),
					flags, NULL),
			 0);
	bpf_object__close(object);
}

/* Attaches an XDP program that is not urxe's and passes every frame. */
static void attach_foreign_program(const char *iface)
{
	const struct bpf_insn insns[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_PASS},
		{.code = BPF_JMP | BPF_EXIT},
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "other", "GPL", insns, 2, NULL);

	assert_true(fd >= 0);
	assert_int_equal(bpf_xdp_attach((int)if_nametoindex(iface), fd, 0, NULL), 0);
	close(fd);
}

static uint32_t xdp_program(const char *iface)
{
	uint32_t id;

	assert_int_equal(bpf_xdp_query_id((int)if_nametoindex(iface), 0, &id), 0);
	return id;
}

/* At the hook of veth's driver, the program would take GSO from the other end of the cable. */
static void check_at_kernels_hook(const char *iface)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);

	assert_int_equal(bpf_xdp_query((int)if_nametoindex(iface), 0, &query), 0);
	assert_int_equal(query.attach_mode, XDP_ATTACHED_SKB);
}

/* The port does not open, and the interface keeps its XDP program. */
static void check_xdp_refused(const char *iface, const char *says)
{
	const uint32_t before = xdp_program(iface);
	struct netdev *port;
	char spec[512], error[256];

	snprintf(spec, sizeof(spec), "af_xdp:%s,xdp_prog=%s", iface, program);
	assert_int_equal(netdev_dpdk_open(spec, 0, &port, error, sizeof(error)), -EBUSY);
	if (!strstr(error, says))
		fail_msg("%s", error);
	assert_int_not_equal(before, 0);
	assert_int_equal(xdp_program(iface), before);
}

static bool make_xdp_interface(void)
{
	return !cable_shell("ip link add xc type veth peer name xd && "
			    "ip link property add dev xc altname xc-also");
}

/*
 * The port opens in spite of a program at that hook, and leaves none. On a new interface each time,
 * because Linux closes the socket of a port that is gone later than the port.
 */
static void check_xdp_replaced(uint32_t flags)
{
	struct netdev *port;
	char spec[512], error[512];

	assert_true(make_xdp_interface());
	abandon_xdp_program("xc", flags);
	snprintf(spec, sizeof(spec), "af_xdp:xc,xdp_prog=%s", program);
	if (netdev_dpdk_open(spec, 0, &port, error, sizeof(error)))
		fail_msg("%s", error);
	check_at_kernels_hook("xc");
	/* By its second name this process does not recognize the interface as its own. */
	check_xdp_refused("xc-also", "another process");
	netdev_close(port);
	assert_int_equal(xdp_program("xc"), 0);
	cable_shell("ip link delete xc");
}

/* A port replaces the program of a killed process, but no program in use and no other one than
 * urxe's. */
static void test_af_xdp_replaces_only_abandoned_programs(void **state)
{
	(void)state;
	skip_without_namespace();
	if (!program || !make_xdp_interface()) {
		print_message(
			"skipped: needs a compiler for BPF, and names besides of interfaces\n");
		skip();
	}
	attach_foreign_program("xc");
	check_xdp_refused("xc", "ip link set dev xc xdp off");
	cable_shell("ip link delete xc");
	check_xdp_replaced(0);
	check_xdp_replaced(XDP_FLAGS_SKB_MODE);
}

/* Opens and closes an af_packet port at an interface; returns the identifier of the XDP program
 * that the interface then has. */
static uint32_t program_under_af_packet(const char *iface)
{
	struct netdev *port;
	char spec[64], error[512];
	uint32_t id;

	snprintf(spec, sizeof(spec), "af_packet:%s", iface);
	if (netdev_dpdk_open(spec, 0, &port, error, sizeof(error)))
		fail_msg("%s", error);
	id = xdp_program(iface);
	netdev_close(port);
	return id;
}

/* The program of a killed process would refuse a larger MTU, and cost time for each frame. */
static void test_af_packet_removes_only_abandoned_programs(void **state)
{
	struct netdev *port;
	uint32_t id;

	(void)state;
	skip_without_namespace();
	port = open_xdp();
	id = xdp_program("xa");
	assert_int_not_equal(id, 0);
	assert_int_equal(program_under_af_packet("xa"), id);
	netdev_close(port);
	cable_shell("ip link delete xa");
	assert_true(make_xdp_interface());
	abandon_xdp_program("xc", 0);
	assert_int_equal(program_under_af_packet("xc"), 0);
	attach_foreign_program("xc");
	assert_int_not_equal(program_under_af_packet("xc"), 0);
	cable_shell("ip link delete xc");
}

/* libbpf's reason is part of the error message, not a line of its own. */
static void test_af_xdp_error_contains_reason_of_libbpf(void **state)
{
	int kept = dup(STDERR_FILENO), fds[2];
	struct netdev *port;
	char error[512], byte;

	(void)state;
	skip_without_namespace();
	if (cable_shell("ip link add xe type veth peer name xf")) {
		print_message("skipped: needs veth interfaces\n");
		skip();
	}
	assert_int_equal(pipe(fds), 0);
	fflush(stderr);
	dup2(fds[1], STDERR_FILENO);
	close(fds[1]);
	assert_true(netdev_dpdk_open("af_xdp:xe,xdp_prog=/bin/sh", 0, &port, error, sizeof(error)) <
		    0);
	fflush(stderr);
	dup2(kept, STDERR_FILENO);
	close(kept);
	assert_int_equal(read(fds[0], &byte, 1), 0);
	close(fds[0]);
	assert_non_null(strstr(error, "libbpf"));
	cable_shell("ip link delete xe");
}

/* The port reads one queue, so an interface with more queues is refused. */
static void test_af_xdp_refuses_several_queues(void **state)
{
	struct netdev *port;
	char error[512];

	(void)state;
	skip_without_namespace();
	if (cable_shell("ip link add xq numrxqueues 2 numtxqueues 2 type veth peer name xr")) {
		print_message("skipped: needs veth interfaces with queues\n");
		skip();
	}
	assert_int_equal(netdev_dpdk_open("af_xdp:xq,xdp_prog=/x", 0, &port, error, sizeof(error)),
			 -EINVAL);
	assert_non_null(strstr(error, "2 receive queues"));
	cable_shell("ip link delete xq");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_af_xdp_separates_roce_from_other_frames),
		cmocka_unit_test(test_af_xdp_goes_on_after_the_interface_was_down),
		cmocka_unit_test(test_runs_to_machines_are_cut),
		cmocka_unit_test(test_added_mac_is_the_hosts),
		cmocka_unit_test(test_af_xdp_without_frames_does_not_wait),
		cmocka_unit_test(test_af_xdp_does_no_busy_polling),
		cmocka_unit_test(test_af_xdp_leaves_no_descriptor),
		cmocka_unit_test(test_failed_start_leaves_no_descriptor),
		cmocka_unit_test(test_af_xdp_replaces_only_abandoned_programs),
		cmocka_unit_test(test_af_packet_removes_only_abandoned_programs),
		cmocka_unit_test(test_af_xdp_error_contains_reason_of_libbpf),
		cmocka_unit_test(test_af_xdp_refuses_several_queues),
	};

	program = argc > 1 ? argv[1] : NULL;
	return cmocka_run_group_tests(tests, setup, NULL);
}
