/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* urxe bench: measures, in one thread, an engine and a frame port (with --bare only the port)
 * against a peer at the other end of the cable. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <netdev/netdev.h>

#include "bench/endpoint.h"
#include "bench/raw_frame.h"
#include "bench/raw_latency.h"
#include "bench/raw_stream.h"
#include "bench/station.h"
#include "common/clock.h"
#include "common/command_line.h"
#include "common/log.h"
#include "common/port_open.h"
#include "common/quantity.h"
#include "common/standard_fds.h"

#define LATENCY_SIZE 2
#define WRITE_SIZE   (64 * 1024)
#define SAMPLES      (1u << 20) /* maximum number of measured round trips */
#define WARM_UP      1000       /* round trips before the measured ones */
#define GREET_NS     (100 * NS_PER_MS)
#define WAIT_S       10
#define SECONDS_MAX  3600

static const char usage[] =
	"usage: urxe bench --port SPEC --listen [--bare]\n"
	"       urxe bench --port SPEC [--size BYTES] [--seconds N] [--json]\n"
	"       urxe bench --port SPEC --bare [--seconds N] [--json]\n"
	"Measures the RoCE engine and a frame port in one thread, without daemon and programs.\n"
	"One end of a cable listens; the other end prints the one-way latency of a SEND of\n"
	"2 bytes and the bandwidth of WRITEs. Both ends poll; the listener sleeps after 100 ms\n"
	"without a frame. With --bare at both ends no engine runs, and the printed figures are\n"
	"the one-way latency of a frame as long as that of such a SEND, and the bandwidth of\n"
	"payloads in frames as long as those of WRITEs.\n"
	"\n"
	"  --port SPEC    the end of the cable, as an uplink of urxed: af_packet:IFACE,\n"
	"                 af_xdp:IFACE, tap:NAME, qemu:PATH, or dpdk:ARGS for any EAL device\n"
	"  --listen       serve until SIGINT or SIGTERM, one peer at a time\n"
	"  --bare         send frames without an engine, at both ends\n"
	"  --size BYTES   size of a WRITE, 1 to 8M; default 64K\n"
	"  --seconds N    duration of each measurement, 1 to 3600; default 1\n"
	"  --json         print one JSON document: seconds, bytes per second, and the share\n"
	"                 of a processor that this end used for the WRITEs\n"
	"\n"
	"Exit status: 0; 1 if the port cannot be opened, no peer answers within 10 s or the\n"
	"connection breaks; 2 for a wrong command line.\n";

static const struct option options[] = {
	{"port", required_argument, NULL, 'p'},    {"listen", no_argument, NULL, 'l'},
	{"bare", no_argument, NULL, 'b'},          {"size", required_argument, NULL, 's'},
	{"seconds", required_argument, NULL, 't'}, {"json", no_argument, NULL, 'j'},
	{"help", no_argument, NULL, 'h'},          {0}};

struct arguments {
	const char *port;
	bool listen;
	bool bare;
	bool json;
	uint64_t size; /* of a WRITE */
	uint64_t seconds;
};

struct figures {
	double latency;   /* s, one way, median */
	double bandwidth; /* bytes/s */
	double share;     /* of a processor that this end used for the WRITEs */
};

static volatile sig_atomic_t ended; /* a signal has arrived */

/* --- Arguments */

static bool parse_number(const char *name, const char *text, const struct quantity_unit *units,
			 uint64_t most, uint64_t *value)
{
	if (quantity_read(text, units, value) && *value && *value <= most)
		return true;
	log_line("--%s %s is not a number from 1 to %" PRIu64, name, text, most);
	return false;
}

static bool apply_option(struct arguments *a, int opt, char **argv, int at)
{
	switch (opt) {
	case 'p': a->port = optarg; return true;
	case 'l': a->listen = true; return true;
	case 'b': a->bare = true; return true;
	case 'j': a->json = true; return true;
	case 's': return parse_number("size", optarg, quantity_bytes, STATION_MEMORY, &a->size);
	case 't': return parse_number("seconds", optarg, quantity_count, SECONDS_MAX, &a->seconds);
	default: log_bad_option("urxe bench", opt, argv, at); return false;
	}
}

static bool parse_arguments(int argc, char **argv, struct arguments *a)
{
	int opt, at = optind;

	*a = (struct arguments){.seconds = 1};
	for (; (opt = getopt_long(argc, argv, ":", options, NULL)) != -1; at = optind) {
		if (opt == 'h') {
			fputs(usage, stdout);
			exit(0);
		}
		if (!apply_option(a, opt, argv, at))
			return false;
	}
	if (optind < argc)
		log_line("bench takes no argument %s; see urxe bench --help", argv[optind]);
	else if (!a->port)
		log_line("bench needs a port, as in: urxe bench --port af_packet:eth0 --listen");
	else if (a->bare && a->size)
		log_line("--size cannot be combined with --bare");
	else {
		a->size = a->size ? a->size : WRITE_SIZE;
		return true;
	}
	return false;
}

/* --- Measurements. False: the peer does not answer, the connection broke, a post failed, the MTU
 * is too small (measure_stream), or a signal arrived. */

static bool run_station_once(struct station *s)
{
	station_turn(s);
	return !ended && !station_failed(s);
}

static bool connect_station(struct station *s)
{
	uint64_t now = now_ns(), next = now, end = now + WAIT_S * NS_PER_SEC;

	for (; !station_connected(s) && now < end; now = now_ns()) {
		if (now >= next) {
			station_greet(s);
			next = now + GREET_NS;
		}
		if (!run_station_once(s) || station_connect_error(s))
			return false;
	}
	return station_connected(s);
}

static bool exchange_send(void *end)
{
	struct station *s = end;
	uint64_t had = station_received(s);

	if (station_send(s, LATENCY_SIZE))
		return false;
	while (station_received(s) == had)
		if (!run_station_once(s))
			return false;
	return true;
}

static bool exchange_bare_frame(void *end)
{
	uint64_t start = now_ns(), now = start, next = start;

	for (; !ended && now - start < WAIT_S * NS_PER_SEC; now = now_ns()) {
		if (now >= next) {
			raw_latency_ask(end, now, next != start);
			next = now + GREET_NS;
		}
		if (raw_latency_answered(end, now))
			return true;
	}
	return false;
}

static int compare_u32(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static bool measure_latency(bool (*round_trip)(void *end), void *from, uint64_t seconds,
			    double *latency)
{
	static uint32_t took[SAMPLES]; /* ns */
	uint64_t now, end;
	uint32_t n = 0;

	for (uint32_t i = 0; i < WARM_UP; i++)
		if (!round_trip(from))
			return false;
	now = now_ns();
	for (end = now + seconds * NS_PER_SEC; now < end && n < SAMPLES; n++) {
		uint64_t start = now;

		if (!round_trip(from))
			return false;
		now = now_ns();
		took[n] = (uint32_t)(now - start);
	}
	qsort(took, n, sizeof(took[0]), compare_u32);
	*latency = took[n / 2] / 2.0 / NS_PER_SEC;
	return true;
}

static double get_cpu_seconds(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

static bool measure_bandwidth(struct station *s, uint32_t size, uint64_t seconds, struct figures *f)
{
	double work = get_cpu_seconds(), took;
	uint64_t start = now_ns(), end = start + seconds * NS_PER_SEC;
	uint64_t before = station_completed(s);

	while (now_ns() < end) {
		while (station_outstanding(s) < STATION_SENDS)
			if (station_write(s, size))
				return false;
		if (!run_station_once(s))
			return false;
	}
	took = (double)(now_ns() - start) / NS_PER_SEC;
	f->bandwidth = (double)(station_completed(s) - before) * size / took;
	f->share = (get_cpu_seconds() - work) / took;
	return true;
}

static void print_figures(const struct arguments *a, const struct figures *f)
{
	if (a->json) {
		printf("{\"send_latency_s\": %.9g, \"write_bytes_per_s\": %.9g, "
		       "\"write_size\": %" PRIu64 ", \"processor_share\": %.6g}\n",
		       f->latency, f->bandwidth, a->size, f->share);
		return;
	}
	printf("send latency, 2 B, one way  %10.3f us\n", f->latency * 1e6);
	printf("write bandwidth, %" PRIu64 " B  %10.3f MB/s\n", a->size, f->bandwidth / 1e6);
}

/* --- Both ends of the cable */

static void print_listening(const char *port)
{
	printf("listening on %s\n", port);
	fflush(stdout);
}

static int log_no_answer(const struct arguments *a)
{
	if (!ended)
		log_line("%s: no peer answers within %d s; does urxe bench --listen%s run there?",
			 a->port, WAIT_S, a->bare ? " --bare" : "");
	return STATUS_FAILED;
}

/* Logs why the station did not connect, or lost its connection. Returns STATUS_FAILED. */
static int log_no_connection(const struct arguments *a, const struct station *s)
{
	if (ended)
		return STATUS_FAILED;
	if (station_failed(s))
		log_line("%s: the connection broke (completion status %" PRIu32 ")", a->port,
			 station_failed(s));
	else if (station_connect_error(s))
		log_line("%s: cannot connect to the peer: %s", a->port,
			 strerror(station_connect_error(s)));
	else if (station_connected(s))
		log_line("%s: the engine accepts no request", a->port);
	else
		return log_no_answer(a);
	return STATUS_FAILED;
}

static int serve_station(struct station *s, const char *port)
{
	print_listening(port);
	while (!ended)
		station_turn(s);
	return 0;
}

static int measure_station(struct station *s, const struct arguments *a)
{
	struct figures f;

	if (!connect_station(s) || !measure_latency(exchange_send, s, a->seconds, &f.latency) ||
	    !measure_bandwidth(s, (uint32_t)a->size, a->seconds, &f))
		return log_no_connection(a, s);
	print_figures(a, &f);
	return 0;
}

static int run_with_engine(struct netdev *port, const struct arguments *a)
{
	struct station *s;
	int rc = station_create(port, a->listen, &s);

	if (rc) {
		log_line("%s: cannot create an engine: %s", a->port, strerror(-rc));
		return STATUS_FAILED;
	}
	rc = a->listen ? serve_station(s, a->port) : measure_station(s, a);
	station_destroy(s);
	return rc;
}

static int serve_bare(struct raw_latency *bare, const char *port)
{
	print_listening(port);
	for (uint64_t now; !ended;) {
		now = now_ns();
		raw_latency_answer(bare, now);
		if (endpoint_quiet(bare->last_rx, now))
			endpoint_nap();
	}
	return 0;
}

static bool measure_stream(const struct raw_latency *bare, uint64_t seconds, double *bandwidth)
{
	struct raw_stream stream;
	uint64_t start = now_ns(), now = start, end = start + seconds * NS_PER_SEC;

	if (raw_stream_init(&stream, bare->port, bare->mac, bare->peer))
		return false;
	for (; now < end && !ended; now = now_ns())
		raw_stream_turn(&stream, now);
	*bandwidth = (double)(stream.delivered * stream.payload) * NS_PER_SEC / (now - start);
	return !ended;
}

static int measure_bare(struct raw_latency *bare, const struct arguments *a)
{
	double latency, bandwidth;

	if (!measure_latency(exchange_bare_frame, bare, a->seconds, &latency))
		return log_no_answer(a);
	if (!measure_stream(bare, a->seconds, &bandwidth)) {
		if (!ended)
			log_line("%s: its MTU is too small for a RoCE packet", a->port);
		return STATUS_FAILED;
	}
	if (a->json) {
		printf("{\"frame_latency_s\": %.9g, \"frame_size\": %d, "
		       "\"stream_bytes_per_s\": %.9g}\n",
		       latency, RAW_FRAME_LEN, bandwidth);
		return 0;
	}
	printf("frame latency, %d B, one way  %10.3f us\n", RAW_FRAME_LEN, latency * 1e6);
	printf("frame bandwidth  %10.3f MB/s\n", bandwidth / 1e6);
	return 0;
}

static int run_without_engine(struct netdev *port, const struct arguments *a)
{
	struct raw_latency bare;
	int rc;

	raw_latency_init(&bare, port);
	rc = a->listen ? serve_bare(&bare, a->port) : measure_bare(&bare, a);
	netdev_close(port);
	return rc;
}

static void on_signal(int number)
{
	(void)number;
	ended = 1;
}

static void set_up_signals(void)
{
	const struct sigaction action = {.sa_handler = on_signal};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

int main(int argc, char **argv)
{
	char error[PORT_OPEN_ERROR];
	struct arguments a;
	struct netdev *port;

	standard_fds_fill();
	standard_fds_check_output();
	if (!parse_arguments(argc, argv, &a))
		return STATUS_USAGE;
	if (port_open(a.port, &port, error)) {
		log_line("%s", error);
		return STATUS_FAILED;
	}
	set_up_signals();
	return a.bare ? run_without_engine(port, &a) : run_with_engine(port, &a);
}
