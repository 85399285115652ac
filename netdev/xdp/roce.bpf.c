/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * XDP program for af_xdp uplinks: redirects RoCE to the daemon. The kernel gets all other frames,
 * including ARP and neighbour discovery, and RoCE that packet sockets receive: to queue pairs with
 * a direct uplink, to QP1, and to virtual machines. The kernel does not see other RoCE, so it sends
 * no ICMP for it.
 *
 * gcc or clang compiles it for the kernel's BPF machine. DPDK's af_xdp driver loads it and puts its
 * socket into the map xsks_map.
 */
/*
 * Copied from linux/bpf.h: gcc 12 would write all types of that header into the object, one of
 * which the kernel refuses.
 */
#define BPF_MAP_TYPE_ARRAY       2
#define BPF_MAP_TYPE_XSKMAP      17
#define BPF_F_MMAPABLE           (1 << 10)
#define BPF_FUNC_map_lookup_elem 1
#define BPF_FUNC_redirect_map    51
#define XDP_PASS                 2

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

struct xdp_md {
	u32 data, data_end, data_meta, ingress_ifindex, rx_queue_index;
};

#define SECTION(name) __attribute__((section(name), used))

#define ETHER_TYPE 12 /* offset of the EtherType */
#define ETHER_HDR  14
#define VLAN_HDR   4
#define GRH        40
#define ROCE_V1    0x8915 /* IBA vol 1, Annex A16 */
#define ROCE_PORT  4791   /* Annex A17 */
#define VLAN       0x8100
#define IPV4       0x0800
#define IPV6       0x86dd
#define UDP        17

#define QUEUES 64

#define QPN_GSI 1 /* QP1, IBA 13.5 */

#define BLOCK_SHIFT 12
#define WORDS       64

#define OWN_MACS 5

/* The queue pairs whose packets pass to the kernel; xdp_program.c writes it. */
struct passed {
	u64 blocks[WORDS]; /* a bit for each block of 2^12 queue pair numbers */
	u64 qp1;           /* not 0: also QP1 */
	/* The host's unicast MACs as numbers, the first byte most significant; 0 = none. If
	 * own_macs[0] is not 0, RoCE to all other unicast MACs passes, too. */
	u64 own_macs[OWN_MACS];
};

/* libbpf reads a map's parameters from these types. */
struct {
	int (*type)[BPF_MAP_TYPE_XSKMAP];
	int (*max_entries)[QUEUES];
	u32 *key;
	u32 *value;
} xsks_map SECTION(".maps");

struct {
	int (*type)[BPF_MAP_TYPE_ARRAY];
	int (*map_flags)[BPF_F_MMAPABLE];
	int (*max_entries)[1];
	u32 *key;
	struct passed *value;
} passed_qpns SECTION(".maps");

/* In assembly: the kernel refuses gcc 12's type information for a helper called by number. */
static inline long redirect_map(void *map, u64 key, u64 flags)
{
	register long r0 __asm__("r0");
	register void *r1 __asm__("r1") = map;
	register u64 r2 __asm__("r2") = key;
	register u64 r3 __asm__("r3") = flags;

	__asm__ volatile("call %4"
			 : "=r"(r0), "+r"(r1), "+r"(r2), "+r"(r3)
			 : "i"(BPF_FUNC_redirect_map)
			 : "r4", "r5", "memory");
	return r0;
}

static inline void *look_up(void *map, const u32 *key)
{
	register void *r0 __asm__("r0");
	register void *r1 __asm__("r1") = map;
	register const u32 *r2 __asm__("r2") = key;

	__asm__ volatile("call %3"
			 : "=r"(r0), "+r"(r1), "+r"(r2)
			 : "i"(BPF_FUNC_map_lookup_elem)
			 : "r3", "r4", "r5", "memory");
	return r0;
}

static inline u16 be16(const u8 *p)
{
	return (u16)(p[0] << 8 | p[1]);
}

/* Whether the IPv4 packet is RoCEv2; false with IP options or in fragments, of which only the first
 * has a port. */
static inline int is_roce_v4(const u8 *ip, const u8 *end)
{
	return ip + 28 <= end && ip[0] == 0x45 && !(be16(ip + 6) & 0x3fff) && ip[9] == UDP &&
	       be16(ip + 22) == ROCE_PORT;
}

/* Whether the IPv6 packet is RoCEv2; false with extension headers. */
static inline int is_roce_v6(const u8 *ip, const u8 *end)
{
	return ip + 48 <= end && ip[6] == UDP && be16(ip + 42) == ROCE_PORT;
}

/* Returns the BTH; 0: the frame is no RoCE. */
static inline const u8 *find_bth(const u8 *frame, const u8 *end)
{
	u16 type;

	if (frame + ETHER_HDR + VLAN_HDR > end)
		return 0;
	type = be16(frame + ETHER_TYPE);
	if (type == VLAN) {
		frame += VLAN_HDR;
		type = be16(frame + ETHER_TYPE);
	}
	frame += ETHER_HDR;
	if (type == IPV4)
		return is_roce_v4(frame, end) ? frame + 28 : 0;
	if (type == IPV6)
		return is_roce_v6(frame, end) ? frame + 48 : 0;
	return type == ROCE_V1 ? frame + GRH : 0;
}

static inline u64 read_mac(const u8 *mac)
{
	return (u64)be16(mac) << 32 | (u64)be16(mac + 2) << 16 | be16(mac + 4);
}

static inline int is_own_mac(const struct passed *passed, u64 mac)
{
	for (u32 i = 0; i < OWN_MACS; i++)
		if (passed->own_macs[i] == mac)
			return 1;
	return 0;
}

/* Whether the RoCE frame passes to the kernel, because a packet socket there receives it. */
static inline int is_passed(const u8 *frame, const u8 *bth, const u8 *end)
{
	const u32 key = 0;
	const struct passed *passed;
	u32 qpn, block;

	if (bth + 8 > end)
		return 0;
	qpn = (u32)be16(bth + 5) << 8 | bth[7];
	block = qpn >> BLOCK_SHIFT;
	passed = look_up(&passed_qpns, &key);
	if (!passed)
		return 0;
	if (qpn == QPN_GSI && passed->qp1)
		return 1;
	if (passed->own_macs[0] && !(frame[0] & 1) && !is_own_mac(passed, read_mac(frame)))
		return 1;
	return passed->blocks[block / 64 % WORDS] >> block % 64 & 1;
}

/*
 * RoCE of a receive queue without an AF_XDP socket goes to the kernel. The program needs Linux 5.5,
 * for BPF_F_MMAPABLE. xdp_program.c finds it by the function's name.
 */
SECTION("xdp") int urxe_roce(struct xdp_md *md)
{
	const u8 *frame = (const u8 *)(unsigned long)md->data;
	const u8 *end = (const u8 *)(unsigned long)md->data_end;

	const u8 *bth = find_bth(frame, end);

	if (!bth || is_passed(frame, bth, end))
		return XDP_PASS;
	return (int)redirect_map(&xsks_map, md->rx_queue_index, XDP_PASS);
}

/* The kernel requires a licence that it knows. */
unsigned char license_text[] SECTION("license") = "Dual BSD/GPL";
