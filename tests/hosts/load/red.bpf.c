/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Marks frames as a switch does whose queue grows (RED with ECN), for the egress of an interface
 * that a token bucket filter limits to RATE. Few kernels have a queueing discipline that marks.
 *
 * tc runs the program before the queue, whose length the program cannot see. So it computes the
 * length, from the bytes so far, the rate, and the size beyond which the queue drops.
 *
 * gcc or clang compiles it; see netdev/xdp/roce.bpf.c for types and calls.
 */
#define BPF_MAP_TYPE_ARRAY      2
#define BPF_FUNC_map_lookup     1
#define BPF_FUNC_ktime_get_ns   5
#define BPF_FUNC_get_prandom    7
#define BPF_FUNC_skb_ecn_set_ce 97
#define TC_ACT_OK               0

typedef unsigned int u32;
typedef unsigned long long u64;

/* The first member of linux/bpf.h's structure, which is all that the program reads. */
struct __sk_buff {
	u32 len;
};

#define SECTION(name) __attribute__((section(name), used))

/* As tests/hosts/load/incast.py sets the interface's queue. */
#define NS_PER_BYTE 16 /* 500 Mbit/s */
#define LIMIT       1000000
/* No frame is marked below MIN, 1 of MOST_OF at MAX, all beyond MAX (DCQCN's paper: 5 and 200 KB, 1
 * %). */
#define MIN     5000
#define MAX     200000
#define MOST_OF 100

struct queue {
	u64 length; /* bytes */
	u64 at;     /* time of the length, ns */
};

struct {
	int (*type)[BPF_MAP_TYPE_ARRAY];
	int (*max_entries)[1];
	u32 *key;
	struct queue *value;
} queues SECTION(".maps");

/* In assembly, as in netdev/xdp/roce.bpf.c. */
#define CALL(function, first, second)                           \
	({                                                      \
		register u64 r0 __asm__("r0");                  \
		register const void *r1 __asm__("r1") = first;  \
		register const void *r2 __asm__("r2") = second; \
		__asm__ volatile("call %3"                      \
				 : "=r"(r0), "+r"(r1), "+r"(r2) \
				 : "i"(function)                \
				 : "r3", "r4", "r5", "memory"); \
		r0;                                             \
	})

/* The length after this frame. */
static inline u64 add_to_queue(struct queue *queue, u32 len)
{
	u64 now = CALL(BPF_FUNC_ktime_get_ns, 0, 0), sent = (now - queue->at) / NS_PER_BYTE;

	queue->at = now;
	queue->length = queue->length > sent ? queue->length - sent : 0;
	if (queue->length + len <= LIMIT)
		queue->length += len;
	return queue->length;
}

static inline int is_marked(u64 length)
{
	u32 random = (u32)CALL(BPF_FUNC_get_prandom, 0, 0) >> 8;

	if (length < MIN)
		return 0;
	return length > MAX || random % ((MAX - MIN) * MOST_OF) < length - MIN;
}

SECTION("classifier") int red(struct __sk_buff *skb)
{
	u32 key = 0;
	struct queue *queue = (struct queue *)CALL(BPF_FUNC_map_lookup, &queues, &key);

	/* Frames that are not ECN-capable stay as they are. */
	if (queue && is_marked(add_to_queue(queue, skb->len)))
		CALL(BPF_FUNC_skb_ecn_set_ce, skb, 0);
	return TC_ACT_OK;
}

/* The kernel requires a licence that it knows. */
unsigned char license_text[] SECTION("license") = "Dual BSD/GPL";
