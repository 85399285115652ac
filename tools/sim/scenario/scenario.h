/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The parameters of a simulation: parsing, help and output. The same scenario gives the same
 * simulation, event for event.
 */
#ifndef URXE_SIM_SCENARIO_SCENARIO_H
#define URXE_SIM_SCENARIO_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * A parameter with this value gets a value from the seed. Only parameters that have BY_SEED in
 * scenario_default may have it.
 */
#define BY_SEED UINT64_MAX

#define SCENARIO_MAX_NODES 10000
#define SCENARIO_MAX_QPS   4096
#define SCENARIO_MAX_DEPTH 1024

/* X(identifier, name, meaning), as in the lists below: hosts to which a host opens connections. */
#define PATTERN_LIST(X)                                           \
	X(RANDOM, "random", "any other host")                     \
	X(SOME, "some", "one of the first tenth of the hosts")    \
	X(PAIRS, "pairs", "host 1 to 0, 3 to 2, ...: --qps each") \
	X(RING, "ring", "the next host")                          \
	X(INCAST, "incast", "host 0")

/* Traffic of a connection: write, read and send from the opener, the others in both directions. */
#define TRAFFIC_LIST(X)                                                         \
	X(MIXED, "mixed", "all operations of RC, UC and UD, of random lengths") \
	X(RC, "rc", "all operations of RC")                                     \
	X(UC, "uc", "all operations of UC")                                     \
	X(UD, "ud", "datagrams")                                                \
	X(WRITE, "write", "RC RDMA WRITEs of --size bytes, without a pause")    \
	X(READ, "read", "RC RDMA READs of --size bytes, without a pause")       \
	X(SEND, "send", "RC SENDs of --size bytes, without a pause")

/* Hosts whose engine recovers from losses by go-back-N and a fixed timer. */
#define STRICT_LIST(X)                                       \
	X(NONE, "none", "no host")                           \
	X(ALL, "all", "every host")                          \
	X(OPENERS, "openers", "hosts that open connections") \
	X(TARGETS, "targets", "hosts that open none")

/* Hosts that --migrate moves. */
#define MOVERS_LIST(X)                                       \
	X(ALL, "all", "every host")                          \
	X(OPENERS, "openers", "hosts that open connections") \
	X(TARGETS, "targets", "hosts that open none")

/* Hosts whose engines get the announcement of a host that --migrate has moved
 * (rxe/announcement.h). */
#define HEARERS_LIST(X)                                                      \
	X(RANDOM, "random", "one of the settings below, anew for each move") \
	X(NONE, "none", "no host")                                           \
	X(PEERS, "peers", "every other host")                                \
	X(SELF, "self", "the host itself")                                   \
	X(ALL, "all", "every host")

#define CONGESTION_LIST(X)                                    \
	X(DCQCN, "dcqcn", "ECN-capable packets, CNPs, DCQCN") \
	X(NONE, "none", "none")

#define STRICT_ENUM(id, name, text)  STRICT_##id,
#define PATTERN_ENUM(id, name, text) PATTERN_##id,
#define TRAFFIC_ENUM(id, name, text) TRAFFIC_##id,
enum pattern { PATTERN_LIST(PATTERN_ENUM) };
enum traffic { TRAFFIC_LIST(TRAFFIC_ENUM) };
#define MOVERS_ENUM(id, name, text) MOVERS_##id,
enum movers { MOVERS_LIST(MOVERS_ENUM) };
#define HEARERS_ENUM(id, name, text) HEARERS_##id,
enum hearers { HEARERS_LIST(HEARERS_ENUM) HEARERS_COUNT };
enum strict { STRICT_LIST(STRICT_ENUM) };

struct scenario {
	uint64_t seed;
	uint64_t nodes;
	uint64_t qps; /* connections that each host opens */
	uint64_t pattern;
	uint64_t traffic;
	uint64_t messages;   /* requests that each sending end posts */
	uint64_t size;       /* bytes of the longest message */
	uint64_t depth;      /* requests of an end that are outstanding at once */
	uint64_t mtu;        /* path MTU, bytes */
	uint64_t timeout;    /* local ACK timeout, IBA's exponent */
	uint64_t retries;    /* 0 to 7 */
	uint64_t window;     /* unacknowledged packets of a QP */
	uint64_t go_back_n;  /* enum strict */
	uint64_t congestion; /* enum urxe_congestion */
	uint64_t gap_time;   /* ns; delay of a sequence NAK; 0 = the engine's default */
	uint64_t probe_time; /* ns; least silence before a probe; 0 = the engine's default */
	uint64_t send_ahead; /* ns; time for which frames of a host may wait for its cable */
	uint64_t time;       /* ns; end of posting */
	uint64_t warmup;     /* ns; start of the measurement of goodput */
	uint64_t migrate;    /* number of migrations, each of one host or several at the same
				time */
	uint64_t record;     /* recordings of hosts, which are replayed */
	uint64_t failures;   /* connections that fail, at most (host/failure.h) */
	uint64_t drains;     /* drains of send queues, at most (host/drain.h) */
	uint64_t resizes;    /* SRQs that are resized, at most (host/recv_queue.h) */
	uint64_t changes;    /* changes of attributes and registrations, at most (host/change.h) */
	uint64_t members;    /* number of members of multicast groups (host/member.h) */
	double fast_regions; /* share of windows that are fast registrations, 0 to 1 */
	uint64_t movers;     /* enum movers: which hosts migrate */
	uint64_t hearers;    /* enum hearers: whose engines are told that a host has moved */
	uint64_t pause;      /* ns that a host is frozen when it migrates; BY_SEED = random */
	/* The network. It impairs a frame only on its way from its host to the switch. */
	double loss;           /* share of frames that are lost, 0 to 1 */
	uint64_t burst;        /* mean length of a burst of lost frames; 1 = independent losses */
	uint64_t drop_mask;    /* bit n loses frame n, counted from 0 */
	uint64_t max_losses;   /* most losses of one packet by `loss` or `corrupt`; 0 = no limit */
	double duplicate;      /* share of frames, 0 to 1 */
	double reorder;        /* share of frames, 0 to 1 */
	uint64_t reorder_time; /* ns; maximum delay of a reordered frame */
	double corrupt;        /* share of frames with a flipped bit, 0 to 1 */
	uint64_t delay;        /* ns of propagation from host to host */
	uint64_t rate;         /* bit/s of every cable; 0 = no limit */
	uint64_t queue;        /* bytes of the queue of a switch port; 0 = no limit */
	uint64_t ecn_min, ecn_max; /* queue lengths in bytes between which the share of marked
				      frames rises... */
	double ecn_share;          /* ...from 0 to this; longer queues mark all. 0 = no marks */
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

/*
 * Sets the parameter of that name, without "--", from the text of its value. False: `error` has one
 * sentence.
 */
bool scenario_set(struct scenario *scenario, const char *name, const char *value, char *error,
		  uint32_t error_size);
/* Name of the i-th parameter; NULL: no such parameter. */
const char *scenario_parameter(unsigned i);
/* Checks that the parameters are consistent. False: `error` has one sentence. */
bool scenario_check(const struct scenario *scenario, char *error, uint32_t error_size);
/* Prints all parameters with their defaults, for --help. */
void scenario_help(FILE *to);
/* Prints the options that differ from the default, each after a space. */
void scenario_print(const struct scenario *scenario, FILE *to);
/*
 * Prints all parameters as members of a JSON object, without its braces. null: the seed determines
 * the value.
 */
void scenario_print_json(const struct scenario *scenario, FILE *to);

#endif
