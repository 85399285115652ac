/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sim/scenario/scenario.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <rxe/cong.h>

#include "common/quantity.h"

/* CONGESTION_LIST has the order of enum urxe_congestion. */
#define SAME(id, name, text) CONGESTION_##id,
enum { CONGESTION_LIST(SAME) CONGESTIONS };
_Static_assert((int)CONGESTION_DCQCN == (int)URXE_CONGESTION_DCQCN &&
		       (int)CONGESTION_NONE == (int)URXE_CONGESTION_NONE &&
		       (int)CONGESTIONS == (int)URXE_CONGESTION_COUNT,
	       "names of congestion control");

#define NS_SECOND UINT64_C(1000000000)
#define NS_HOUR   (3600 * NS_SECOND)
#define KIB       UINT64_C(1024)

const struct scenario scenario_default = {
	.seed = 1,
	.nodes = 2,
	.qps = BY_SEED,
	.messages = BY_SEED,
	.size = 65536 + 99,
	.depth = BY_SEED,
	.mtu = BY_SEED,
	.timeout = BY_SEED,
	.retries = 7,
	.window = BY_SEED,
	.time = NS_HOUR,
	.pause = BY_SEED,
	.burst = 1,
	.max_losses = 2,
	.reorder_time = BY_SEED,
	.delay = BY_SEED,
	.rate = BY_SEED,
};

enum kind {
	KIND_COUNT,
	KIND_SHARE,  /* 0 to 1 */
	KIND_TIME,   /* ns, or with a unit */
	KIND_BYTES,  /* K, M, G: powers of 1024 */
	KIND_RATE,   /* bit/s; k, M, G: powers of 1000 */
	KIND_CHOICE, /* one of some names */
	KIND_MASK,   /* hexadecimal */
	KIND_ECN,    /* KMIN,KMAX,PMAX */
};

struct choice {
	const char *name;
	const char *text;
};

#define CHOICE(id, name, text) {name, text},
static const struct choice patterns[] = {PATTERN_LIST(CHOICE){NULL, NULL}};
static const struct choice stricts[] = {STRICT_LIST(CHOICE){NULL, NULL}};
static const struct choice movers[] = {MOVERS_LIST(CHOICE){NULL, NULL}};
static const struct choice hearers[] = {HEARERS_LIST(CHOICE){NULL, NULL}};
static const struct choice congestions[] = {CONGESTION_LIST(CHOICE){NULL, NULL}};
static const struct choice traffics[] = {TRAFFIC_LIST(CHOICE){NULL, NULL}};

static const struct parameter {
	const char *name;
	enum kind kind;
	uint16_t offset;
	uint64_t min, max;
	const struct choice *choices;
	const char *text;
} parameters[] = {
#define P(name, kind, member, min, max, text)                                       \
	{                                                                           \
		name, kind, offsetof(struct scenario, member), min, max, NULL, text \
	}
	P("seed", KIND_COUNT, seed, 0, UINT64_MAX - 1, "seed of all random choices"),
	P("nodes", KIND_COUNT, nodes, 2, SCENARIO_MAX_NODES, "hosts"),
	P("qps", KIND_COUNT, qps, 1, SCENARIO_MAX_QPS, "connections that each host opens"),
	{"pattern", KIND_CHOICE, offsetof(struct scenario, pattern), 0, 0, patterns,
	 "hosts to which it opens them:"},
	{"traffic", KIND_CHOICE, offsetof(struct scenario, traffic), 0, 0, traffics,
	 "traffic of a connection:"},
	P("messages", KIND_COUNT, messages, 1, 100000000, "requests of each sending end"),
	P("size", KIND_BYTES, size, 1, 64 * KIB * KIB, "maximum message length"),
	P("depth", KIND_COUNT, depth, 1, SCENARIO_MAX_DEPTH, "outstanding requests"),
	P("mtu", KIND_COUNT, mtu, 256, 4096, "path MTU: 256, 512, 1024, 2048 or 4096 bytes"),
	P("timeout", KIND_COUNT, timeout, 0, 31, "local ACK timeout: 4.096 us * 2^N; 0 = none"),
	P("retries", KIND_COUNT, retries, 0, 7, "retry count"),
	P("window", KIND_COUNT, window, 1, 1 << 22, "unacknowledged packets of a QP"),
	{"go-back-n", KIND_CHOICE, offsetof(struct scenario, go_back_n), 0, 0, stricts,
	 "hosts that recover by go-back-N and a fixed timer:"},
	{"congestion", KIND_CHOICE, offsetof(struct scenario, congestion), 0, 0, congestions,
	 "congestion control:"},
	P("gap-time", KIND_TIME, gap_time, 0, NS_SECOND,
	  "delay of a sequence NAK; 0 = the engine's default"),
	P("probe-time", KIND_TIME, probe_time, 0, NS_SECOND,
	  "least silence before a probe; 0 = the engine's default"),
	P("send-ahead", KIND_TIME, send_ahead, 0, NS_SECOND,
	  "time for which frames of a host may wait for its cable"),
	P("time", KIND_TIME, time, 1, NS_HOUR, "time at which posting ends"),
	P("warmup", KIND_TIME, warmup, 0, NS_HOUR, "time from which goodput is measured"),
	P("migrate", KIND_COUNT, migrate, 0, 1000000,
	  "moments at which hosts are saved and restored elsewhere"),
	{"movers", KIND_CHOICE, offsetof(struct scenario, movers), 0, 0, movers,
	 "hosts that --migrate moves:"},
	{"announce", KIND_CHOICE, offsetof(struct scenario, hearers), 0, 0, hearers,
	 "hosts whose engines get the announcement of a moved host:"},
	P("pause", KIND_TIME, pause, 1, NS_HOUR, "time that a moving host is frozen"),
	P("record", KIND_COUNT, record, 0, 1000000,
	  "times that a host is recorded, and its recording replayed"),
	P("failures", KIND_COUNT, failures, 0, 1000000,
	  "times that a connection is chosen to fail by a mistake of one end"),
	P("drains", KIND_COUNT, drains, 0, 1000000,
	  "times that the send queue of an end is drained (SQD)"),
	P("resizes", KIND_COUNT, resizes, 0, 1000000,
	  "times that a host is chosen to resize its shared receive queue, if it has one"),
	P("changes", KIND_COUNT, changes, 0, 1000000,
	  "times that an end changes attributes, or its host registers its memory again"),
	P("fast-regions", KIND_SHARE, fast_regions, 0, 1,
	  "share of memory windows that are fast registrations instead"),
	P("members", KIND_COUNT, members, 0, 10000,
	  "UD queue pairs that join and leave multicast groups, and send to them"),
	P("loss", KIND_SHARE, loss, 0, 1, "share of frames that are lost"),
	P("burst", KIND_COUNT, burst, 1, 10000, "mean length of a burst of lost frames"),
	P("drop-mask", KIND_MASK, drop_mask, 0, UINT64_MAX, "bit n loses the n-th frame"),
	P("max-losses", KIND_COUNT, max_losses, 0, 255,
	  "maximum losses of the same packet; 0 = no limit"),
	P("dup", KIND_SHARE, duplicate, 0, 1, "share of frames that are duplicated"),
	P("reorder", KIND_SHARE, reorder, 0, 1, "share of frames that are reordered"),
	P("reorder-time", KIND_TIME, reorder_time, 1, NS_SECOND,
	  "maximum delay of a reordered frame"),
	P("corrupt", KIND_SHARE, corrupt, 0, 1, "share of frames with a flipped bit"),
	P("delay", KIND_TIME, delay, 0, NS_SECOND, "propagation from host to host"),
	P("rate", KIND_RATE, rate, 0, UINT64_C(1000000000000),
	  "bit/s of every cable; 0 = no limit"),
	P("queue", KIND_BYTES, queue, 0, UINT64_C(1) << 40,
	  "bytes of the queue of a switch port; 0 = no limit"),
	P("ecn", KIND_ECN, ecn_min, 0, UINT64_C(1) << 40,
	  "KMIN,KMAX,PMAX: ECN marks by the queue's length"),
#undef P
};

#define N_PARAMETERS (sizeof(parameters) / sizeof(parameters[0]))

static uint64_t *get_integer(const struct parameter *p, const struct scenario *scenario)
{
	return (uint64_t *)((char *)(uintptr_t)scenario + p->offset);
}

static double *get_real(const struct parameter *p, const struct scenario *scenario)
{
	return (double *)((char *)(uintptr_t)scenario + p->offset);
}

/* --- Reading */

static const struct quantity_unit *get_units(enum kind kind)
{
	switch (kind) {
	case KIND_TIME: return quantity_time;
	case KIND_RATE: return quantity_rate;
	case KIND_BYTES: return quantity_bytes;
	default: return quantity_count;
	}
}

static bool read_choice(const char *text, const struct choice *choices, uint64_t *value)
{
	for (*value = 0; choices[*value].name; ++*value)
		if (!strcmp(text, choices[*value].name))
			return true;
	return false;
}

static bool read_mask(const char *text, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 16);
	return *text && *text != '-' && *text != '+' && *text != ' ' && !*end && !errno;
}

static bool read_ecn(const char *text, struct scenario *scenario)
{
	char min[32], max[32], share[32];

	if (sscanf(text, "%31[^,],%31[^,],%31[^,]", min, max, share) != 3 ||
	    strlen(min) + strlen(max) + strlen(share) + 2 != strlen(text))
		return false;
	return quantity_read(min, quantity_bytes, &scenario->ecn_min) &&
	       quantity_read(max, quantity_bytes, &scenario->ecn_max) &&
	       quantity_fraction(share, &scenario->ecn_share) &&
	       scenario->ecn_min < scenario->ecn_max && scenario->ecn_share > 0;
}

static bool is_valid_mtu(uint64_t mtu)
{
	return mtu >= 256 && mtu <= 4096 && !(mtu & (mtu - 1));
}

static bool read_parameter(const struct parameter *p, const char *text, struct scenario *scenario)
{
	uint64_t value;
	double share;

	switch (p->kind) {
	case KIND_SHARE:
		if (!quantity_fraction(text, &share))
			return false;
		*get_real(p, scenario) = share;
		return true;
	case KIND_ECN: return read_ecn(text, scenario);
	case KIND_CHOICE:
		if (!read_choice(text, p->choices, &value))
			return false;
		break;
	case KIND_MASK:
		if (!read_mask(text, &value))
			return false;
		break;
	default:
		if (!quantity_read(text, get_units(p->kind), &value) || value < p->min ||
		    value > p->max)
			return false;
		if (p->offset == offsetof(struct scenario, mtu) && !is_valid_mtu(value))
			return false;
	}
	*get_integer(p, scenario) = value;
	return true;
}

static void explain_range(const struct parameter *p, const char *value, char *error, uint32_t size)
{
	switch (p->kind) {
	case KIND_SHARE:
		snprintf(error, size, "--%s is a share from 0 to 1, or with %%, not '%s'", p->name,
			 value);
		break;
	case KIND_CHOICE:
		snprintf(error, size, "--%s has no value '%s'; see urxe sim --help", p->name,
			 value);
		break;
	case KIND_MASK:
		snprintf(error, size, "--%s is a hexadecimal number of at most 64 bits, not '%s'",
			 p->name, value);
		break;
	case KIND_ECN:
		snprintf(error, size,
			 "--%s is KMIN,KMAX,PMAX with KMIN < KMAX in bytes and a share, not '%s'",
			 p->name, value);
		break;
	default:
		snprintf(error, size,
			 "--%s is a number from %" PRIu64 " to %" PRIu64 "%s, not '%s'", p->name,
			 p->min, p->max,
			 p->kind == KIND_TIME              ? " ns (also with us, ms, s)"
			 : p->kind == KIND_RATE            ? " bit/s (also with k, M, G)"
			 : p->kind == KIND_BYTES           ? " bytes (also with K, M, G)"
			 : p->max == 4096 && p->min == 256 ? " that is a power of two"
							   : "",
			 value);
	}
}

bool scenario_set(struct scenario *scenario, const char *name, const char *value, char *error,
		  uint32_t error_size)
{
	for (unsigned i = 0; i < N_PARAMETERS; i++) {
		if (strcmp(parameters[i].name, name))
			continue;
		if (read_parameter(&parameters[i], value, scenario))
			return true;
		explain_range(&parameters[i], value, error, error_size);
		return false;
	}
	snprintf(error, error_size, "unknown parameter --%s", name);
	return false;
}

const char *scenario_parameter(unsigned i)
{
	return i < N_PARAMETERS ? parameters[i].name : NULL;
}

/* The first option in use that needs applications with random turns; NULL: none. */
static const char *get_turn_option(const struct scenario *scenario)
{
	if (scenario->drains)
		return "--drains";
	if (scenario->changes)
		return "--changes";
	if (scenario->members)
		return "--members";
	return scenario->resizes ? "--resizes" : NULL;
}

bool scenario_check(const struct scenario *scenario, char *error, uint32_t error_size)
{
	const bool has_rate = scenario->rate && scenario->rate != BY_SEED;
	const double burst = (double)scenario->burst;

	if ((scenario->queue || scenario->ecn_share > 0) && !has_rate) {
		snprintf(error, error_size,
			 "--queue and --ecn need a --rate: without one no queue exists");
		return false;
	}
	/* The most that bursts of B frames lose, with at least one frame between two bursts. */
	if (scenario->burst > 1 && scenario->loss > burst / (burst + 1)) {
		snprintf(error, error_size,
			 "--loss is at most %g with --burst %" PRIu64
			 ": a frame between two bursts arrives",
			 burst / (burst + 1), scenario->burst);
		return false;
	}
	if (scenario->failures && !scenario->timeout) {
		snprintf(error, error_size,
			 "--failures need a --timeout: without one a peer waits for ever");
		return false;
	}
	if (scenario_is_bulk(scenario) && get_turn_option(scenario)) {
		snprintf(error, error_size,
			 "%s need applications that run at random times: --traffic mixed, rc, uc "
			 "or ud",
			 get_turn_option(scenario));
		return false;
	}
	if (scenario->warmup >= scenario->time) {
		snprintf(error, error_size, "--warmup must be less than --time");
		return false;
	}
	return true;
}

/* --- Printing */

static void print_choices(const struct choice *choices, FILE *to)
{
	for (; choices->name; choices++)
		fprintf(to, "  %-22s  %-8s %s\n", "", choices->name, choices->text);
}

static const char *get_argument_name(const struct parameter *p)
{
	switch (p->kind) {
	case KIND_SHARE: return "P";
	case KIND_TIME: return "T";
	case KIND_BYTES: return "B";
	case KIND_RATE: return "R";
	case KIND_MASK: return "HEX";
	case KIND_ECN: return "K,K,P";
	case KIND_CHOICE: return "NAME";
	default: return "N";
	}
}

static void print_value(const struct parameter *p, const struct scenario *scenario, FILE *to)
{
	switch (p->kind) {
	case KIND_SHARE: fprintf(to, "%.17g", *get_real(p, scenario)); break;
	case KIND_CHOICE: fputs(p->choices[*get_integer(p, scenario)].name, to); break;
	case KIND_MASK: fprintf(to, "%" PRIx64, *get_integer(p, scenario)); break;
	case KIND_ECN:
		fprintf(to, "%" PRIu64 ",%" PRIu64 ",%.17g", scenario->ecn_min, scenario->ecn_max,
			scenario->ecn_share);
		break;
	default: fprintf(to, "%" PRIu64, *get_integer(p, scenario));
	}
}

static void print_default(const struct parameter *p, FILE *to)
{
	if (p->kind == KIND_MASK || p->kind == KIND_ECN)
		return;
	if (p->kind != KIND_SHARE && *get_integer(p, &scenario_default) == BY_SEED) {
		fputs(" (by the seed)", to);
		return;
	}
	fputs(" (", to);
	print_value(p, &scenario_default, to);
	fputc(')', to);
}

void scenario_help(FILE *to)
{
	for (unsigned i = 0; i < N_PARAMETERS; i++) {
		const struct parameter *p = &parameters[i];

		fprintf(to, "  --%-13s %-6s  %s", p->name, get_argument_name(p), p->text);
		print_default(p, to);
		fputc('\n', to);
		if (p->choices)
			print_choices(p->choices, to);
	}
}

static bool is_default(const struct parameter *p, const struct scenario *scenario)
{
	if (p->kind == KIND_SHARE)
		return *get_real(p, scenario) == *get_real(p, &scenario_default);
	if (p->kind == KIND_ECN)
		return scenario->ecn_share <= 0;
	return *get_integer(p, scenario) == *get_integer(p, &scenario_default);
}

void scenario_print(const struct scenario *scenario, FILE *to)
{
	for (unsigned i = 0; i < N_PARAMETERS; i++) {
		if (is_default(&parameters[i], scenario))
			continue;
		fprintf(to, " --%s ", parameters[i].name);
		print_value(&parameters[i], scenario, to);
	}
}

void scenario_print_json(const struct scenario *scenario, FILE *to)
{
	for (unsigned i = 0; i < N_PARAMETERS; i++) {
		const struct parameter *p = &parameters[i];
		const bool text =
			p->kind == KIND_CHOICE || p->kind == KIND_ECN || p->kind == KIND_MASK;

		fprintf(to, "%s\"%s\": %s", i ? ", " : "", p->name, text ? "\"" : "");
		if (p->kind != KIND_SHARE && !text && *get_integer(p, scenario) == BY_SEED)
			fputs("null", to);
		else
			print_value(p, scenario, to);
		fputs(text ? "\"" : "", to);
	}
}
