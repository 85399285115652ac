/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* urxe capture: what passes the switch, as lines or as pcapng. */
#include "urxe/cmd.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "capture/capture_ring.h"
#include "capture/frame_text.h"
#include "capture/pcapng.h"
#include "common/bad_option.h"
#include "common/exit_status.h"
#include "common/log.h"
#include "common/printable.h"
#include "common/rundir.h"
#include "urxed/report/control_client.h"

#define NS 1000000000u

static const char usage[] =
	"usage: urxe capture [-i PORT] [-w FILE] [-c COUNT] [--run-dir DIR]\n"
	"Captures what comes from the ports of urxed's switch and goes to them, until SIGINT.\n"
	"\n"
	"  -i PORT        this port alone, by its name or number as urxe show port has them\n"
	"  -w FILE        writes pcapng to FILE, - being standard output; else prints lines\n"
	"  -c COUNT       ends after so many frames\n"
	"  --run-dir DIR  the daemon's directory; default as urxed's\n"
	"\n"
	"Frames between processes pass the switch while somebody captures. How many were\n"
	"captured, and lost because we were too slow, is said at the end.\n"
	"\n"
	"Exit status: 0; 1 where no daemon answers, it has no such port or the file cannot be\n"
	"written; 2 where the command is wrong.\n";

static const struct option options[] = {
	{"run-dir", required_argument, NULL, 'd'}, {"help", no_argument, NULL, 'h'}, {0}};

struct arguments {
	const char *port;
	const char *file; /* NULL = lines */
	const char *run_dir;
	uint64_t count; /* UINT64_MAX = without end */
};

static int parse_count(const char *text, uint64_t *count)
{
	char *end;

	errno = 0;
	*count = strtoull(text, &end, 10);
	if (*end || end == text || text[0] == '-' || errno || !*count) {
		log_line("-c wants a number of frames, not %s", text);
		return STATUS_USAGE;
	}
	return 0;
}

static int parse(int argc, char **argv, struct arguments *a)
{
	int opt, at = optind, rc = 0;

	for (; !rc && (opt = getopt_long(argc, argv, ":i:w:c:", options, NULL)) != -1;
	     at = optind) {
		switch (opt) {
		case 'i': a->port = optarg; break;
		case 'w': a->file = optarg; break;
		case 'c': rc = parse_count(optarg, &a->count); break;
		case 'd': a->run_dir = optarg; break;
		case 'h': fputs(usage, stdout); exit(0);
		case ':':
			log_line("option %s needs a value; see urxe capture --help",
				 bad_option(argv, at));
			return STATUS_USAGE;
		default:
			log_line("unknown option %s; see urxe capture --help",
				 bad_option(argv, at));
			return STATUS_USAGE;
		}
	}
	if (!rc && optind < argc) {
		log_line("unexpected argument %s; see urxe capture --help", argv[optind]);
		rc = STATUS_USAGE;
	}
	return rc;
}

/* --- Where frames go */

struct sink {
	FILE *out;
	bool lines;
	struct pcapng pcapng;
};

/* A frame with its texts. */
struct captured {
	const struct capture_record *record;
	const uint8_t *frame;
	char name[SWITCH_PORT_NAME];
	char words[FRAME_TEXT]; /* what it is */
	char drop[FRAME_TEXT];  /* why it was dropped; "" = it was not */
};

static const char *meaning(const char *reason)
{
	static const struct {
		const char *name, *text;
	} rows[] = {
#define DROP_ROW(id, name, text) {name, text},
		SWITCH_DROP_LIST(DROP_ROW)
#undef DROP_ROW
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strcmp(rows[i].name, reason))
			return rows[i].text;
	return "";
}

static void describe(struct captured *c)
{
	const struct capture_record *r = c->record;
	char name[SWITCH_PORT_NAME], reason[CAPTURE_REASON], shown[CAPTURE_REASON];

	snprintf(name, sizeof(name), "%.*s", (int)sizeof(r->name) - 1, r->name);
	printable_copy(c->name, sizeof(c->name), name);
	snprintf(reason, sizeof(reason), "%.*s", (int)sizeof(r->reason) - 1, r->reason);
	printable_copy(shown, sizeof(shown), reason);
	c->drop[0] = '\0';
	if (reason[0])
		snprintf(c->drop, sizeof(c->drop), "dropped, %s: %s", shown, meaning(reason));
	frame_words(c->words, c->frame, r->len);
}

static const char *direction(const struct captured *c)
{
	return c->record->direction == SWITCH_IN ? "from" : "to";
}

static int print_line(const struct sink *sink, const struct captured *c)
{
	time_t seconds = (time_t)(c->record->time / NS);
	char clock[16] = "", addresses[FRAME_TEXT];
	struct tm tm;

	if (localtime_r(&seconds, &tm))
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	frame_addresses(addresses, c->frame, c->record->len);
	return fprintf(sink->out, "%s.%09u %s %s  %s  %s  %u bytes%s%s\n", clock,
		       (unsigned)(c->record->time % NS), direction(c), c->name, addresses, c->words,
		       c->record->len, c->drop[0] ? "  " : "", c->drop) < 0
		       ? -EIO
		       : 0;
}

static int write_packet(struct sink *sink, const struct captured *c)
{
	char comment[2 * FRAME_TEXT + SWITCH_PORT_NAME];
	const struct pcapng_packet packet = {
		.interface = c->name,
		.time = c->record->time,
		.direction = c->record->direction == SWITCH_IN ? PCAPNG_INBOUND : PCAPNG_OUTBOUND,
		.data = c->frame,
		.len = c->record->len,
		.comment = comment,
	};

	snprintf(comment, sizeof(comment), "%s %s: %s%s%s", direction(c), c->name, c->words,
		 c->drop[0] ? "; " : "", c->drop);
	return pcapng_put(&sink->pcapng, &packet);
}

static int take(struct sink *sink, const struct capture_record *record, const uint8_t *frame)
{
	struct captured c = {.record = record, .frame = frame};

	describe(&c);
	return sink->lines ? print_line(sink, &c) : write_packet(sink, &c);
}

static int open_sink(struct sink *sink, const char *file)
{
	sink->lines = !file;
	sink->out = !file || !strcmp(file, "-") ? stdout : fopen(file, "we");
	if (!sink->out) {
		log_line("cannot write %s: %s", file, strerror(errno));
		return -1;
	}
	if (sink->lines || !pcapng_begin(&sink->pcapng, sink->out, "urxe " URXE_VERSION))
		return 0;
	log_line("cannot write %s", file);
	return -1;
}

/* --- The loop */

/* Stops on a signal, or when the daemon goes. */
struct wait {
	int socket;
	int signals;
};

/* False: it is time to stop. */
static bool wait_for_more(const struct wait *w)
{
	struct pollfd fds[2] = {{w->socket, POLLIN, 0}, {w->signals, POLLIN, 0}};
	char byte;

	if (poll(fds, 2, -1) < 0)
		return errno == EINTR;
	if (fds[1].revents)
		return false;
	if (!fds[0].revents || recv(w->socket, &byte, 1, MSG_DONTWAIT) > 0)
		return true;
	log_line("urxed has gone");
	return false;
}

static bool stopped(const struct wait *w)
{
	struct pollfd pfd = {w->signals, POLLIN, 0};

	return poll(&pfd, 1, 0) > 0;
}

/* Takes what there is; returns 0, or a negative errno value. */
static int take_all(struct capture_reader *ring, struct sink *sink, uint64_t count, uint64_t *taken,
		    uint64_t until)
{
	const struct capture_record *record;
	const uint8_t *frame;
	int rc = 0;

	while (!rc && *taken < count && ring->tail < until) {
		rc = capture_reader_next(ring, &record, &frame);
		if (rc <= 0)
			break;
		++*taken;
		rc = take(sink, record, frame);
	}
	/* Who reads the other end of a pipe wants what there is. */
	return !rc && fflush(sink->out) ? -EIO : rc;
}

static int capture(struct capture_reader *ring, struct sink *sink, const struct wait *w,
		   uint64_t count, uint64_t *taken)
{
	bool more = true;
	int rc = 0;

	while (!rc && more && *taken < count) {
		more = !capture_reader_wait(ring) || wait_for_more(w);
		/* At the end, too: but not what comes meanwhile. */
		rc = take_all(ring, sink, count, taken, capture_reader_head(ring));
		if (more)
			more = !stopped(w);
	}
	return rc;
}

static int signal_fd(void)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

static int run(const struct arguments *a, const struct wait *w, int memory)
{
	struct capture_reader ring;
	struct sink sink = {0};
	uint64_t taken = 0;
	int rc = capture_reader_open(&ring, memory);

	if (rc) {
		log_line("cannot map the capture's ring: %s", strerror(-rc));
		return STATUS_FAILED;
	}
	if (open_sink(&sink, a->file))
		return STATUS_FAILED;
	rc = capture(&ring, &sink, w, a->count, &taken);
	if (!rc && fflush(sink.out))
		rc = -EIO;
	if (rc)
		log_line("the capture ends: %s", strerror(-rc));
	log_line("%" PRIu64 " frames captured, %" PRIu64 " lost", taken,
		 capture_reader_lost(&ring));
	pcapng_end(&sink.pcapng);
	capture_reader_close(&ring);
	return rc ? STATUS_FAILED : 0;
}

int cmd_capture(int argc, char **argv)
{
	char run_dir[RUNDIR_MAX],
		error[CONTROL_CLIENT_ERROR > RUNDIR_ERROR ? CONTROL_CLIENT_ERROR : RUNDIR_ERROR];
	struct arguments a = {.port = "", .count = UINT64_MAX};
	int rc = parse(argc, argv, &a), memory;
	struct wait w;

	if (rc)
		return rc;
	if (rundir_path(a.run_dir, run_dir, error)) {
		log_line("%s", error);
		return STATUS_USAGE;
	}
	w.signals = signal_fd();
	if (w.signals < 0) {
		log_line("cannot take signals: %s", strerror(errno));
		return STATUS_FAILED;
	}
	w.socket = control_client_capture(run_dir, a.port, &memory, error);
	if (w.socket < 0) {
		log_line("%s", error);
		return STATUS_FAILED;
	}
	return run(&a, &w, memory);
}
