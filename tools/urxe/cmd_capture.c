/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* urxe capture: prints the frames at the ports of urxed's switch, or writes them as pcapng. */
#include "urxe/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "capture/capture_ring.h"
#include "capture/frame_json.h"
#include "capture/frame_text.h"
#include "capture/pcapng.h"
#include "capture/recording_file.h"
#include "common/clock.h"
#include "common/command_line.h"
#include "common/log.h"
#include "common/printable.h"
#include "common/rundir.h"
#include "urxe/capture_recordings.h"
#include "urxed/report/control_client.h"

/* Time between two looks at the recordings, ms: shorter than a process needs to fill its ring. */
#define RECORDINGS_MS 10
/* Time between two attempts to open a named pipe without a reader, ms. */
#define READER_MS 100

static const char usage[] =
	"usage: urxe capture [-i PORT] [-w FILE [--state] | --json] [-c COUNT] [--run-dir DIR]\n"
	"Captures the frames at the ports of urxed's switch, until SIGINT.\n"
	"\n"
	"  -i PORT        capture one port only, by its name or number in urxe show port\n"
	"  -w FILE        write pcapng to FILE (- is standard output) instead of lines\n"
	"  --state        also write the states and the calls of the programs' engines, which\n"
	"                 urxe replay can repeat\n"
	"  --json         print a JSON object in each line instead\n"
	"  -c COUNT       end after COUNT frames; with --state, count only after all programs\n"
	"                 that run when the capture starts have given their state\n"
	"  --run-dir DIR  the daemon's directory; default as for urxed\n"
	"\n"
	"While a capture runs, frames between processes cross the switch. At the end the\n"
	"command prints the number of captured frames, and of frames that it lost.\n"
	"\n"
	"Exit status: 0; 1 if no daemon answers, the port does not exist or the file cannot be\n"
	"written; 2 for a wrong command line.\n";

static const struct option options[] = {{"run-dir", required_argument, NULL, 'd'},
					{"state", no_argument, NULL, 's'},
					{"json", no_argument, NULL, 'j'},
					{"help", no_argument, NULL, 'h'},
					{0}};

struct arguments {
	const char *port; /* NULL = all ports */
	const char *file; /* NULL = lines of text or JSON */
	const char *run_dir;
	bool state;
	bool json;
	uint64_t count; /* UINT64_MAX = no limit */
};

static int parse_count(const char *text, uint64_t *count)
{
	char *end;

	errno = 0;
	*count = strtoull(text, &end, 10);
	if (*end || end == text || text[0] == '-' || errno || !*count) {
		log_line("-c is a number of frames, not %s", text);
		return STATUS_USAGE;
	}
	return 0;
}

static int parse_capture_arguments(int argc, char **argv, struct arguments *a)
{
	int opt, at = optind, rc = 0;

	for (; !rc && (opt = getopt_long(argc, argv, ":i:w:c:", options, NULL)) != -1;
	     at = optind) {
		switch (opt) {
		case 'i': a->port = optarg; break;
		case 'w': a->file = optarg; break;
		case 'c': rc = parse_count(optarg, &a->count); break;
		case 'd': a->run_dir = optarg; break;
		case 's': a->state = true; break;
		case 'j': a->json = true; break;
		case 'h': fputs(usage, stdout); exit(0);
		default: log_bad_option("urxe capture", opt, argv, at); return STATUS_USAGE;
		}
	}
	if (!rc && optind < argc) {
		log_line("unexpected argument %s; see urxe capture --help", argv[optind]);
		rc = STATUS_USAGE;
	}
	if (!rc && a->port && !*a->port) {
		log_line("-i needs the name or number of a port, as urxe show port prints them");
		rc = STATUS_USAGE;
	}
	if (!rc && a->state && !a->file) {
		log_line("--state needs -w; see urxe capture --help");
		rc = STATUS_USAGE;
	}
	if (!rc && a->json && a->file) {
		log_line("--json cannot be combined with -w; see urxe capture --help");
		rc = STATUS_USAGE;
	}
	return rc;
}

/* --- Output */

struct sink {
	FILE *out;
	enum { LINES, JSON, PCAPNG } format;
	struct pcapng pcapng;
	struct capture_recordings recordings;
};

/* A frame and its descriptions. */
struct captured {
	const struct capture_record *record;
	const uint8_t *frame;
	char name[SWITCH_PORT_NAME];
	char words[FRAME_TEXT];      /* from frame_words */
	char reason[CAPTURE_REASON]; /* of the drop; "" = not dropped */
	char drop[FRAME_TEXT];       /* the reason in words */
};

static const char *get_drop_meaning(const char *reason)
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

static void describe_frame(struct captured *c)
{
	const struct capture_record *r = c->record;
	char name[SWITCH_PORT_NAME], reason[CAPTURE_REASON];

	snprintf(name, sizeof(name), "%.*s", (int)sizeof(r->name) - 1, r->name);
	printable_copy(c->name, sizeof(c->name), name);
	snprintf(reason, sizeof(reason), "%.*s", (int)sizeof(r->reason) - 1, r->reason);
	printable_copy(c->reason, sizeof(c->reason), reason);
	c->drop[0] = '\0';
	if (reason[0])
		snprintf(c->drop, sizeof(c->drop), "dropped, %s: %s", c->reason,
			 get_drop_meaning(reason));
	frame_words(c->words, c->frame, r->len);
}

static const char *get_direction_word(const struct captured *c)
{
	return c->record->direction == SWITCH_IN ? "from" : "to";
}

static int print_frame_line(const struct sink *sink, const struct captured *c)
{
	time_t seconds = (time_t)(c->record->time / NS_PER_SEC);
	char clock[16] = "", addresses[FRAME_TEXT];
	struct tm tm;

	if (localtime_r(&seconds, &tm))
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	frame_addresses(addresses, c->frame, c->record->len);
	return fprintf(sink->out, "%s.%09u %s %s  %s  %s  %u bytes%s%s\n", clock,
		       (unsigned)(c->record->time % NS_PER_SEC), get_direction_word(c), c->name,
		       addresses, c->words, c->record->len, c->drop[0] ? "  " : "", c->drop) < 0
		       ? -errno
		       : 0;
}

static int print_frame_json(const struct sink *sink, const struct captured *c)
{
	json_t *frame = frame_json(c->frame, c->record->len);
	json_t *line = json_pack("{s:I, s:s, s:s, s:s?}", "time_ns", (json_int_t)c->record->time,
				 "direction", get_direction_word(c), "port", c->name, "drop",
				 c->reason[0] ? c->reason : NULL);
	int rc = frame && line && !json_object_update(line, frame) ? 0 : -ENOMEM;

	errno = EIO;
	if (!rc && (json_dumpf(line, sink->out, JSON_ENSURE_ASCII | JSON_PRESERVE_ORDER) ||
		    fputc('\n', sink->out) == EOF))
		rc = -errno;
	json_decref(frame);
	json_decref(line);
	return rc;
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

	snprintf(comment, sizeof(comment), "%s %s: %s%s%s", get_direction_word(c), c->name,
		 c->words, c->drop[0] ? "; " : "", c->drop);
	return pcapng_put(&sink->pcapng, &packet);
}

static int output_frame(struct sink *sink, const struct capture_record *record,
			const uint8_t *frame)
{
	struct captured c = {.record = record, .frame = frame};

	describe_frame(&c);
	switch (sink->format) {
	case LINES: return print_frame_line(sink, &c);
	case JSON: return print_frame_json(sink, &c);
	default: return write_packet(sink, &c);
	}
}

static bool is_named_pipe(const char *name)
{
	struct stat st;

	return !stat(name, &st) && S_ISFIFO(st.st_mode);
}

/*
 * Opens a file for writing; NULL: errno has the reason. Waits for the reader of a named pipe; a
 * signal ends the wait (EINTR).
 */
static FILE *open_file(const char *name, int signals)
{
	struct pollfd pfd = {signals, POLLIN, 0};
	int fd;

	while ((fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666)) < 0 &&
	       errno == ENXIO && is_named_pipe(name))
		if (poll(&pfd, 1, READER_MS) > 0) {
			errno = EINTR;
			return NULL;
		}
	if (fd < 0)
		return NULL;
	fcntl(fd, F_SETFL, O_WRONLY);
	return fdopen(fd, "w");
}

static int open_sink(struct sink *sink, const char *file, bool json, int signals)
{
	sink->format = file ? PCAPNG : json ? JSON : LINES;
	sink->out = !file || !strcmp(file, "-") ? stdout : open_file(file, signals);
	if (!sink->out) {
		log_line("cannot write %s: %s", file, strerror(errno));
		return -1;
	}
	/* The file begins with the daemon's own port, "urxed", because that always exists. */
	if (!file || !pcapng_begin(&sink->pcapng, sink->out, "urxe " URXE_VERSION, "urxed"))
		return 0;
	log_line("cannot write %s", file);
	return -1;
}

/* --- The loop */

/* Descriptors that wake the loop: the daemon's connection (packets, or its end) and the signals. */
struct wake_fds {
	int socket;
	int signals;
};

/*
 * Takes the packets that the daemon has sent, without waiting, and adds the recordings in them.
 * False: the daemon has ended.
 */
static bool take_packets(const struct wake_fds *w, struct capture_recordings *recordings)
{
	char port[CONTROL_PORT];
	bool ended;
	int ring;

	while (control_client_next(w->socket, &ring, port, &ended))
		if (ring >= 0)
			capture_recordings_add(recordings, ring, port);
	if (ended)
		log_line("urxed has ended");
	return !ended;
}

/* Waits for a packet of the daemon or a signal; with recordings, RECORDINGS_MS at most. False: a
 * signal has arrived. */
static bool wait_for_more(const struct wake_fds *w, const struct capture_recordings *recordings)
{
	struct pollfd fds[2] = {{w->socket, POLLIN, 0}, {w->signals, POLLIN, 0}};

	if (poll(fds, 2, recordings->on ? RECORDINGS_MS : -1) < 0)
		return errno == EINTR;
	return !fds[1].revents;
}

static bool got_signal(const struct wake_fds *w)
{
	struct pollfd pfd = {w->signals, POLLIN, 0};

	return poll(&pfd, 1, 0) > 0;
}

/*
 * Outputs the pending frames up to position `until` of the ring, and until *n_output is `count`.
 * Returns 0 or a negative errno value.
 */
static int output_pending(struct capture_reader *ring, struct sink *sink, uint64_t count,
			  uint64_t *n_output, uint64_t until)
{
	const struct capture_record *record;
	const uint8_t *frame;
	int rc = 0;

	while (!rc && *n_output < count && ring->tail < until) {
		rc = capture_reader_next(ring, &record, &frame);
		if (rc <= 0)
			break;
		++*n_output;
		rc = output_frame(sink, record, frame);
	}
	/* Flushes, so that the reader of a pipe gets the frames at once. */
	return !rc && fflush(sink->out) ? -errno : rc;
}

/* The limit of -c. It counts frames only when all processes have answered, or CAPTURE_ANSWER_NS are
 * over. */
struct limit {
	uint64_t count;  /* of -c */
	uint64_t before; /* frames output before the count began */
	bool counting;
};

/* Returns the number of output frames at which the capture ends. UINT64_MAX: the count has not
 * begun, or there is no limit. */
static uint64_t update_limit(struct limit *l, const struct capture_recordings *recordings,
			     uint64_t n_output)
{
	if (!l->counting && !capture_recordings_wait(recordings)) {
		l->counting = true;
		l->before = n_output;
	}
	return l->counting && l->count < UINT64_MAX - l->before ? l->before + l->count : UINT64_MAX;
}

/* Takes the daemon's packets; `idle`: waits for them first. Takes them after a signal, too, because
 * the file has to name each process. False: the capture ends. */
static bool take_recordings(const struct capture_reader *ring, const struct wake_fds *w,
			    struct capture_recordings *recordings, bool idle)
{
	/* Read before the packets: if it is set, the rings that it means are among the packets. */
	const bool listed = capture_reader_is_listed(ring);
	const bool more = !idle || wait_for_more(w, recordings);
	bool connected = true;

	if (idle || recordings->on)
		connected = take_packets(w, recordings);
	recordings->listed = listed;
	return more && connected;
}

static int forward_frames(struct capture_reader *ring, struct sink *sink, const struct wake_fds *w,
			  uint64_t count, uint64_t *n_output)
{
	struct capture_recordings *recordings = &sink->recordings;
	struct limit limit = {.count = count};
	bool more = true, full = false;
	int rc = fflush(sink->out) ? -errno : 0;

	/* After the last frame, waits for the answers of processes that have attached late. */
	while (!rc && more && (!full || capture_recordings_wait(recordings))) {
		more = take_recordings(ring, w, recordings, full || capture_reader_wait(ring));
		/* Recordings before frames: the file gets each frame that a recording refers to. */
		rc = capture_recordings_write(recordings, &sink->pcapng);
		if (rc)
			break;
		/* Outputs frames after the last wait, too, but only those that are in the ring now,
		 * so that later frames do not prolong the capture. */
		rc = output_pending(ring, sink, update_limit(&limit, recordings, *n_output),
				    n_output, capture_reader_head(ring));
		full = *n_output == update_limit(&limit, recordings, *n_output);
		if (more)
			more = !got_signal(w);
	}
	return rc;
}

static int open_signal_fd(void)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

static int run_capture(const struct arguments *a, const struct wake_fds *w, int memory)
{
	struct capture_reader ring;
	struct sink sink = {.recordings = {.on = a->state}};
	uint64_t n_output = 0;
	int rc = capture_reader_open(&ring, memory);

	if (rc) {
		log_line("cannot map the capture's ring: %s", strerror(-rc));
		return STATUS_FAILED;
	}
	if (open_sink(&sink, a->file, a->json, w->signals))
		return STATUS_FAILED;
	rc = forward_frames(&ring, &sink, w, a->count, &n_output);
	if (!rc && a->state)
		rc = recording_put_lost(&sink.pcapng, capture_reader_lost(&ring));
	if (!rc && fflush(sink.out))
		rc = -errno;
	if (rc)
		log_line("the capture ends: %s", strerror(-rc));
	log_line("%" PRIu64 " frames captured, %" PRIu64 " lost", n_output,
		 capture_reader_lost(&ring));
	capture_recordings_end(&sink.recordings, capture_reader_unrecorded(&ring));
	pcapng_end(&sink.pcapng);
	capture_reader_close(&ring);
	return rc ? STATUS_FAILED : 0;
}

int cmd_capture(int argc, char **argv)
{
	char run_dir[RUNDIR_MAX],
		error[CONTROL_CLIENT_ERROR > RUNDIR_ERROR ? CONTROL_CLIENT_ERROR : RUNDIR_ERROR];
	struct arguments a = {.count = UINT64_MAX};
	int rc = parse_capture_arguments(argc, argv, &a), memory;
	struct wake_fds w;

	if (rc)
		return rc;
	if (rundir_path(a.run_dir, run_dir, error)) {
		log_line("%s", error);
		return STATUS_USAGE;
	}
	w.signals = open_signal_fd();
	if (w.signals < 0) {
		log_line("cannot receive signals: %s", strerror(errno));
		return STATUS_FAILED;
	}
	w.socket = control_client_capture(run_dir, a.port ? a.port : "", a.state, &memory, error);
	if (w.socket < 0) {
		log_line("%s", error);
		return STATUS_FAILED;
	}
	return run_capture(&a, &w, memory);
}
