/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The ring for packets to QP1 of an af_packet port, and of an af_xdp port with urxe's XDP program,
 * on a veth cable. Needs root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <linux/virtio_net.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cable.h"

#define ROCE_V1 0x8915
#define IPV4    0x0800
#define IPV6    0x86dd

#define LENGTH 400 /* bytes of each frame that a test sends */
#define MADS   4096
#define DATA   6000 /* packets that fill each port's ring */
/* Before Linux 5.18 the XDP program is at the hook of veth's driver, whose ring has 256 frames. */
#define BURST 64

#define QPN_GSI    1
#define QPN_DATA   0x100  /* in the block of QP1 */
#define QPN_MARKER 0x1001 /* in block 1 */

static const char *skip_reason;
static char af_xdp[512]; /* the specification of the af_xdp port; "": this build has no program */
static char af_packet[] = "af_packet:pa";

/* The source of the packets of other hosts. */
static const uint8_t other_host[6] = {2};

struct cable {
	struct netdev *port;
	int far;
	uint64_t sent; /* frames */
	uint8_t mac[6];
	bool marked; /* the marker has come */
};

/*
 * Runs the test on one processor: each has a queue of frames that the veth interface delivers, and
 * a marker on another one could overtake the frames before it.
 */
static void stay_on_one_processor(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((uint32_t)sched_getcpu(), &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

static int setup(void **state)
{
	(void)state;
	stay_on_one_processor();
	if (geteuid() || unshare(CLONE_NEWNET) || cable_shell("ip link set lo up 2>/dev/null"))
		skip_reason = "needs root, network namespaces and ip(8)";
	return 0;
}

static void skip_without(bool available, const char *reason)
{
	if (!available)
		cable_skip(reason);
}

static struct cable plug(const char *spec)
{
	struct cable cable = {0};

	skip_without(!skip_reason, skip_reason);
	skip_without(*spec, "needs a compiler for BPF");
	cable.port = cable_open(spec);
	assert_true(netdev_mac(cable.port, cable.mac));
	cable.far = cable_socket("pb");
	return cable;
}

static void unplug(struct cable *cable)
{
	close(cable->far);
	netdev_close(cable->port);
	cable_remove();
}

/* --- Sending */

/* Frames that pa has received. */
static uint64_t count_delivered(void)
{
	FILE *file = fopen("/proc/self/net/dev", "r");
	uint64_t packets = 0;
	char line[256];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, " pa: %*u %" SCNu64, &packets) == 1)
			break;
	fclose(file);
	return packets;
}

static void await_delivery(const struct cable *cable)
{
	for (int i = 0; count_delivered() < cable->sent; i++) {
		assert_true(i < CABLE_PATIENCE_MS);
		usleep(1000);
	}
}

/* Writes the headers of a RoCE packet, without the Ethernet header. */
static void write_headers(uint8_t *to, uint16_t type, uint32_t qpn)
{
	const uint32_t bth = type == IPV4 ? 28 : type == IPV6 ? 48 : 40;

	memset(to, 0, bth + 12);
	to[0] = type == IPV4 ? 0x45 : 0x60;
	to[9] = IPPROTO_UDP; /* of IPv4 */
	to[6] = type == IPV6 ? IPPROTO_UDP : 0;
	memcpy(to + bth - 6, (uint8_t[]){4791 >> 8, 4791 & 0xff}, type == ROCE_V1 ? 0 : 2);
	memcpy(to + bth + 5, (uint8_t[]){qpn >> 16, qpn >> 8, qpn}, 3);
}

static void send_packet(struct cable *cable, const uint8_t source[6], bool tagged, uint16_t type,
			uint32_t qpn)
{
	uint8_t frame[LENGTH] = {0}, *at = frame + 14;

	memcpy(frame, cable->mac, 6);
	memcpy(frame + 6, source, 6);
	if (tagged) {
		memcpy(frame + 12, (uint8_t[]){0x81, 0, 0, 100}, 4);
		at += 4;
	}
	memcpy(at - 2, (uint8_t[]){type >> 8, type & 0xff}, 2);
	write_headers(at, type, qpn);
	assert_int_equal(send(cable->far, frame, sizeof(frame), 0), sizeof(frame));
	if (!(++cable->sent % BURST))
		await_delivery(cable);
}

/* Sends MADs of all forms. */
static void send_mads(struct cable *cable, const uint8_t source[6], uint32_t n)
{
	static const uint16_t types[] = {IPV4, IPV6, ROCE_V1};

	for (uint32_t i = 0; i < n; i++)
		send_packet(cable, source, i % 2, types[i % 3], QPN_GSI);
}

/* --- Receiving */

static uint32_t read_qpn(const struct netdev_frame *frame)
{
	const uint8_t *at = frame->data + 14 + 4 * (frame->data[12] == 0x81);
	const uint16_t type = (uint16_t)(at[-2] << 8 | at[-1]);
	const uint8_t *bth = at + (type == IPV4 ? 28 : type == IPV6 ? 48 : 40);

	return (uint32_t)bth[5] << 16 | (uint32_t)bth[6] << 8 | bth[7];
}

/* Counts received MADs and packets to other queue pairs; notes a marker. */
static void count_frames(struct cable *cable, uint32_t *mads, uint32_t *others)
{
	struct netdev_frame frames[32];
	uint32_t n;

	while ((n = netdev_rx(cable->port, 0, frames, 32)))
		for (uint32_t i = 0; i < n; i++) {
			const uint32_t qpn = frames[i].len < LENGTH ? 0 : read_qpn(&frames[i]);

			*mads += qpn == QPN_GSI;
			*others += qpn >= QPN_DATA && qpn != QPN_MARKER;
			cable->marked |= qpn == QPN_MARKER;
		}
}

/* Receives until a marker comes that was sent behind all other frames, and no further frame. */
static uint32_t count_mads(struct cable *cable, uint32_t *others)
{
	struct pollfd wait = {netdev_wait_fd(cable->port), POLLIN, 0};
	uint32_t mads = 0;

	*others = 0;
	/* Two: the rings are emptied in turn, so that of QP1 may get frames behind the first. */
	for (int i = 0; i < 2; i++) {
		await_delivery(cable);
		count_frames(cable, &mads, others);
		cable->marked = false;
		send_packet(cable, other_host, false, IPV4, QPN_MARKER);
		while (!cable->marked) {
			assert_int_equal(poll(&wait, 1, CABLE_PATIENCE_MS), 1);
			count_frames(cable, &mads, others);
		}
	}
	return mads;
}

/* --- Tests */

/* Data that fills the ring displaces no packet to QP1. Returns how much data was lost. */
static uint64_t check_ring_of_its_own(const char *spec, uint64_t *missed)
{
	struct cable cable = plug(spec);
	struct pollfd wait = {netdev_wait_fd(cable.port), POLLIN, 0};
	uint32_t others;
	uint64_t lost;

	count_mads(&cable, &others);
	assert_int_equal(poll(&wait, 1, 0), 0);
	send_mads(&cable, other_host, 1);
	assert_int_equal(poll(&wait, 1, CABLE_PATIENCE_MS), 1);
	assert_int_equal(count_mads(&cable, &others), 1);
	assert_int_equal(poll(&wait, 1, 0), 0);

	for (uint32_t i = 0; i < DATA; i++)
		send_packet(&cable, other_host, false, IPV4, QPN_DATA + i % 0x800);
	send_mads(&cable, other_host, MADS);
	assert_int_equal(count_mads(&cable, &others), MADS);
	assert_in_range(others, 1, DATA - 1);
	lost = DATA - others;
	*missed = cable_counter(cable.port, NETDEV_RX_MISSED);
	assert_int_equal(cable_counter(cable.port, NETDEV_RX_QP1_MISSED), 0);

	send_mads(&cable, other_host, 2 * MADS);
	assert_int_equal(count_mads(&cable, &others) +
				 cable_counter(cable.port, NETDEV_RX_QP1_MISSED),
			 2 * MADS);
	unplug(&cable);
	return lost;
}

static void test_management_has_a_ring_of_its_own(void **state)
{
	uint64_t missed, lost = check_ring_of_its_own(af_packet, &missed);

	(void)state;
	assert_int_equal(missed, lost);
}

/* DPDK's driver does not count what the ring of an AF_XDP socket loses. */
static void test_af_xdp_has_that_ring(void **state)
{
	uint64_t missed;

	(void)state;
	check_ring_of_its_own(af_xdp, &missed);
}

/* A bridge that sends frames back makes no host the peer of itself. */
static void test_own_packets_to_qp1_are_ignored(void **state)
{
	struct cable cable = plug(af_packet);
	uint32_t others;

	(void)state;
	/* More than a burst, and another host's packets behind them. */
	send_mads(&cable, cable.mac, 100);
	send_mads(&cable, other_host, 3);
	assert_int_equal(count_mads(&cable, &others), 3);
	assert_int_equal(cable_counter(cable.port, NETDEV_RX_OWN), 100);
	unplug(&cable);
}

/* With every filter, a packet to QP1 comes once. */
static void check_each_filter(const char *spec)
{
	const uint16_t own[] = {0, 1}, other = 1, excluded = 2;
	struct cable cable = plug(spec);
	uint32_t others;

	for (int round = 0; round < 2; round++) {
		assert_int_equal(netdev_exclude_qpns(cable.port, &excluded, 1), 0);
		send_mads(&cable, other_host, 12);
		assert_int_equal(count_mads(&cable, &others), 12);
		assert_int_equal(netdev_admit_qpns(cable.port, &other, 1), 0);
		send_mads(&cable, other_host, 12);
		assert_int_equal(count_mads(&cable, &others), 12);
		assert_int_equal(netdev_admit_qpns(cable.port, own, 2), 0);
		send_mads(&cable, other_host, 12);
		assert_int_equal(count_mads(&cable, &others), 12);
		assert_int_equal(netdev_set_promiscuous(cable.port, true), 0);
		send_mads(&cable, other_host, 12);
		assert_int_equal(count_mads(&cable, &others), 12);
		assert_int_equal(netdev_set_promiscuous(cable.port, false), 0);
	}
	unplug(&cable);
}

/* The kernel counts the old filter and the new one together: net.core.optmem_max of older kernels.
 */
static void test_filter_needs_no_room_beside_the_old_one(void **state)
{
	uint16_t blocks[512];
	struct cable cable = plug(af_packet);

	(void)state;
	if (cable_shell("echo 20480 2>/dev/null >/proc/sys/net/core/optmem_max")) {
		unplug(&cable);
		skip_without(false, "needs a namespace's own optmem_max (Linux 6.8), and /proc/sys "
				    "to write to");
	}
	for (uint16_t n = 0; n < 512; n++) {
		blocks[n] = n;
		if (n % 16 == 15)
			assert_int_equal(netdev_admit_qpns(cable.port, blocks, n), 0);
	}
	unplug(&cable);
	assert_int_equal(cable_shell("echo 131072 >/proc/sys/net/core/optmem_max"), 0);
}

static void test_each_packet_to_qp1_comes_once(void **state)
{
	(void)state;
	check_each_filter(af_packet);
}

static void test_each_packet_to_qp1_comes_once_by_af_xdp(void **state)
{
	(void)state;
	check_each_filter(af_xdp);
}

/* A sleeping user is woken once when the interface goes down, not without end. */
static void test_af_xdp_interface_down_wakes_once(void **state)
{
	struct cable cable = plug(af_xdp);
	struct pollfd wait = {netdev_wait_fd(cable.port), POLLIN, 0};
	struct netdev_frame got;

	(void)state;
	assert_int_equal(cable_shell("ip link set pa down"), 0);
	assert_int_equal(poll(&wait, 1, CABLE_PATIENCE_MS), 1);
	assert_int_equal(netdev_rx(cable.port, 0, &got, 1), 0);
	assert_int_equal(poll(&wait, 1, 0), 0);
	unplug(&cable);
}

/* --- A virtual machine with a tap */

/* Sends a MAD to the host as a machine does; `type`: gso_type of virtio's header. */
static void send_as_machine(int tap, const uint8_t mac[6], uint8_t type)
{
	uint8_t frame[LENGTH] = {0};

	memcpy(frame, mac, 6);
	memcpy(frame + 6, other_host, 6);
	memcpy(frame + 12, (uint8_t[]){IPV4 >> 8, IPV4 & 0xff}, 2);
	write_headers(frame + 14, IPV4, QPN_GSI);
	cable_tap_send(tap, frame, sizeof(frame), type);
}

/* Returns the number of frames to QP1 that the port receives within a second at most. */
static uint32_t receive_mads(struct netdev *port, uint32_t wanted)
{
	struct pollfd wait = {netdev_wait_fd(port), POLLIN, 0};
	struct netdev_frame frames[8];
	uint32_t mads = 0, n;

	while (mads < wanted && poll(&wait, 1, 1000) > 0)
		while ((n = netdev_rx(port, 0, frames, 8)))
			for (uint32_t i = 0; i < n; i++)
				mads += frames[i].len >= LENGTH && read_qpn(&frames[i]) == QPN_GSI;
	return mads;
}

/* The kernel cannot describe a packet of the old UDP fragmentation offload by a virtio-net header.
 */
static void test_ring_goes_on_after_a_packet_of_ufo(void **state)
{
	struct netdev *port;
	char error[512];
	uint8_t mac[6];
	int tap;

	(void)state;
	skip_without(!skip_reason, skip_reason);
	tap = cable_tap();
	skip_without(tap >= 0, "needs tap interfaces");
	if (netdev_dpdk_open(af_packet, 0, &port, error, sizeof(error)))
		fail_msg("%s", error);
	assert_true(netdev_mac(port, mac));
	send_as_machine(tap, mac, VIRTIO_NET_HDR_GSO_NONE);
	assert_int_equal(receive_mads(port, 1), 1);
	send_as_machine(tap, mac, VIRTIO_NET_HDR_GSO_UDP);
	for (int i = 0; i < 3; i++)
		send_as_machine(tap, mac, VIRTIO_NET_HDR_GSO_NONE);
	assert_in_range(receive_mads(port, 3), 3, 4);
	assert_int_equal(cable_counter(port, NETDEV_RX_QP1_MISSED), 0);
	netdev_close(port);
	close(tap);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_management_has_a_ring_of_its_own),
		cmocka_unit_test(test_af_xdp_has_that_ring),
		cmocka_unit_test(test_own_packets_to_qp1_are_ignored),
		cmocka_unit_test(test_filter_needs_no_room_beside_the_old_one),
		cmocka_unit_test(test_each_packet_to_qp1_comes_once),
		cmocka_unit_test(test_each_packet_to_qp1_comes_once_by_af_xdp),
		cmocka_unit_test(test_af_xdp_interface_down_wakes_once),
		cmocka_unit_test(test_ring_goes_on_after_a_packet_of_ufo),
	};

	if (argc > 1)
		snprintf(af_xdp, sizeof(af_xdp), "af_xdp:pa,xdp_prog=%s", argv[1]);
	return cmocka_run_group_tests(tests, setup, NULL);
}
