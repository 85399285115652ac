/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What makes a simulated world, besides the engine: the same scenario is the
 * same world, event for event.
 */
#ifndef URXE_SIM_SCENARIO_H
#define URXE_SIM_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The value of a parameter that the seed chooses. */
#define BY_SEED UINT64_MAX

#define SCENARIO_MAX_NODES 10000
#define SCENARIO_MAX_QPS   4096
#define SCENARIO_MAX_DEPTH 1024

/* Whom each host opens its connections to. */
#define PATTERN_LIST(X)                                           \
	X(RANDOM, "random", "any other host")                     \
	X(SOME, "some", "one of the first tenth of the hosts")    \
	X(PAIRS, "pairs", "host 1 to 0, 3 to 2, ...: --qps each") \
	X(RING, "ring", "the next host")                          \
	X(INCAST, "incast", "host 0")

/* What the ends of a connection send. Mixed traffic runs both ways, the others from the opener. */
#define TRAFFIC_LIST(X)                                                         \
	X(MIXED, "mixed", "all operations of RC, UC and UD, of random lengths") \
	X(RC, "rc", "all operations of RC")                                     \
	X(UC, "uc", "all operations of UC")                                     \
	X(UD, "ud", "datagrams")                                                \
	X(WRITE, "write", "RC RDMA WRITEs of --size bytes, without a pause")    \
	X(READ, "read", "RDMA READs, the same way")                             \
	X(SEND, "send", "RC SENDs, the same way")

/* Who recovers as the specification has it, and no better. */
#define STRICT_LIST(X)                                       \
	X(NONE, "none", "nobody")                            \
	X(ALL, "all", "every host")                          \
	X(OPENERS, "openers", "hosts that open connections") \
	X(TARGETS, "targets", "hosts that open none")

#define CONGESTION_LIST(X)                                    \
	X(DCQCN, "dcqcn", "ECN-capable packets, CNPs, DCQCN") \
	X(NONE, "none", "none")

#define STRICT_ENUM(id, name, text)  STRICT_##id,
#define PATTERN_ENUM(id, name, text) PATTERN_##id,
#define TRAFFIC_ENUM(id, name, text) TRAFFIC_##id,
enum pattern { PATTERN_LIST(PATTERN_ENUM) PATTERN_COUNT };
enum traffic { TRAFFIC_LIST(TRAFFIC_ENUM) TRAFFIC_COUNT };
enum strict { STRICT_LIST(STRICT_ENUM) STRICT_COUNT };

struct scenario {
	uint64_t seed;
	uint64_t nodes;
	uint64_t qps; /* connections that each host opens */
	uint64_t pattern;
	uint64_t traffic;
	uint64_t messages;   /* requests of each sending end */
	uint64_t size;       /* bytes of the longest message */
	uint64_t depth;      /* requests of an end that are outstanding at once */
	uint64_t mtu;        /* path MTU, bytes */
	uint64_t timeout;    /* local ACK timeout, IBA's exponent */
	uint64_t retries;    /* 0 to 7 */
	uint64_t window;     /* unacknowledged packets of a QP */
	uint64_t go_back_n;  /* enum strict */
	uint64_t congestion; /* enum urxe_congestion */
	uint64_t gap_time;   /* ns; how long a gap may be reordering. 0 = the engine's default */
	uint64_t time;       /* ns; nothing new is posted from then on */
	uint64_t warmup;     /* ns; goodput counts from then on */
	/* The network. Faults strike a frame once on its way, between its host and the switch. */
	double loss;
	uint64_t burst;      /* mean length of a burst of lost frames; 1 = each on its own */
	uint64_t drop_mask;  /* of the first 64 frames of the world, bit n loses the n-th */
	uint64_t max_losses; /* of the same packet, by loss and corruption; 0 = no limit */
	double duplicate;
	double reorder;
	uint64_t reorder_time; /* ns that a reordered frame comes later, at most */
	double corrupt;
	uint64_t delay;            /* ns from host to host, without queues and sending */
	uint64_t rate;             /* bit/s of every cable; 0 = without limit */
	uint64_t queue;            /* bytes that wait at a port of the switch; 0 = without limit */
	uint64_t ecn_min, ecn_max; /* bytes in the queue; ECN marks between them... */
	double ecn_share;          /* ...from no frame to this share, and above all; 0 = no marks */
};

extern const struct scenario scenario_default;

static inline bool scenario_is_bulk(const struct scenario *scenario)
{
	return scenario->traffic >= TRAFFIC_WRITE;
}

static inline uint64_t scenario_or(uint64_t value, uint64_t by_seed)
{
	return value == BY_SEED ? by_seed : value;
}

/* Sets one parameter from its text. `error` gets a sentence where that is wrong, or for a name that
 * is none. */
bool scenario_set(struct scenario *scenario, const char *name, const char *value, char *error,
		  uint32_t error_size);
/* Name of the i-th parameter; NULL behind the last. */
const char *scenario_parameter(unsigned i);
/* Whether the parameters fit each other; else `error` gets a sentence. */
bool scenario_check(const struct scenario *scenario, char *error, uint32_t error_size);
/* All parameters, a line each. */
void scenario_help(FILE *to);
/* The options that make this scenario of the default one, each with a space in front. */
void scenario_print(const struct scenario *scenario, FILE *to);
/* All of it as members of a JSON object, separated by commas; what the seed chooses is null. */
void scenario_print_json(const struct scenario *scenario, FILE *to);

#endif
