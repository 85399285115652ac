/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* urxe replay: parses each packet of a capture with the engine's parser, and checks its ICRC. With
 * --engine, cmd_replay_engine.c replays a recording. */
#include "urxe/cmd.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <netdev/netdev.h>

#include "capture/corrupt_header.h"
#include "capture/gso_run.h"
#include "capture/replay_summary.h"
#include "common/command_line.h"
#include "common/log.h"
#include "urxe/cmd_replay_engine.h"

#define BURST     32
#define ERROR_LEN 256

static const char usage[] =
	"usage: urxe replay FILE [--json]\n"
	"       urxe replay --engine STATE [CAPTURE] [--process NAME] [--all] [--json]\n"
	"Checks the ICRC of every RoCE packet of a capture (pcap or pcapng, Ethernet),\n"
	"follows the PSNs of each connection, and prints a summary.\n"
	"\n"
	"  --engine STATE  instead, repeat the work of programs' engines: the file STATE has\n"
	"                  their states and calls, CAPTURE the frames; default: STATE\n"
	"  --process NAME  only the process with this name, number or port\n"
	"  --all           print each frame, call and completion, not only NAKs, drops and errors\n"
	"\n"
	"Exit status: 0 if the capture has RoCE packets and every ICRC is right, or if each\n"
	"engine did the same as in the capture; 1 if not, or if the file is not a whole\n"
	"capture; 2 for a wrong command line.\n";

static const struct option options[] = {
	{"json", no_argument, NULL, 'j'},          {"engine", required_argument, NULL, 'e'},
	{"process", required_argument, NULL, 'p'}, {"all", no_argument, NULL, 'a'},
	{"help", no_argument, NULL, 'h'},          {0}};

/* Checks the options, and sets a->capture to the file argument or, without one, to the file of
 * --engine. Returns 0 or STATUS_USAGE. */
static int check_replay_arguments(struct replay_engine_options *a, char **files, int n)
{
	if (!a->recordings && (a->process || a->all)) {
		log_line("--process and --all need --engine; see urxe replay --help");
		return STATUS_USAGE;
	}
	if (n > 1 || (!n && !a->recordings)) {
		log_line("replay %s; see urxe replay --help",
			 a->recordings ? "--engine STATE needs at most one capture file"
				       : "needs one capture file");
		return STATUS_USAGE;
	}
	a->capture = n ? files[0] : a->recordings;
	return 0;
}

static int parse_replay_arguments(int argc, char **argv, struct replay_engine_options *a)
{
	int opt, at = optind;

	for (; (opt = getopt_long(argc, argv, ":", options, NULL)) != -1; at = optind) {
		switch (opt) {
		case 'j': a->json = true; break;
		case 'e': a->recordings = optarg; break;
		case 'p': a->process = optarg; break;
		case 'a': a->all = true; break;
		case 'h': fputs(usage, stdout); exit(0);
		default: log_bad_option("urxe replay", opt, argv, at); return STATUS_USAGE;
		}
	}
	return check_replay_arguments(a, argv + optind, argc - optind);
}

/* Counts a packet whose ICRC cannot be found: as unverifiable, neither right nor wrong. */
static void count_unverifiable(struct replay_summary *s, const struct netdev_frame *f,
			       enum urxe_drop drop)
{
	s->unverifiable++;
	s->drops[drop]++;
	if (f->wire_len > f->len)
		s->snapped++;
}

static int check_frame(struct replay_summary *s, const struct netdev_frame *f)
{
	struct urxe_packet p;
	enum urxe_drop drop = urxe_packet_parse(&p, f->data, f->len);
	bool corrupt_header = (drop == URXE_DROP_NOT_ROCE || drop == URXE_DROP_BAD_IP) &&
			      corrupt_header_hides_roce(f->data, f->len);

	s->frames++;
	if (drop == URXE_DROP_NOT_ROCE && !corrupt_header)
		return 0;
	s->roce++;
	if (!p.icrc && !corrupt_header) {
		count_unverifiable(s, f, drop);
		return 0;
	}
	if (corrupt_header || !urxe_packet_icrc_ok(&p)) {
		s->wrong++;
		s->drops[URXE_DROP_BAD_ICRC]++;
		return 0;
	}
	s->right++;
	if (drop) {
		s->drops[drop]++;
		return 0;
	}
	s->opcodes[p.opcode]++;
	return flow_input(s->flows, &p);
}

/*
 * Prepares `run` to cut the packets off a UDP GSO packet. False: the frame is no such packet. To
 * tell one: as a single RoCE packet it has a wrong ICRC, or is too long for its opcode, but the
 * first packet that is cut off has the right ICRC.
 */
static bool cut_run(struct gso_packet *run, const struct netdev_frame *f)
{
	struct urxe_packet p;

	urxe_packet_parse(&p, f->data, f->len);
	return p.icrc && !urxe_packet_icrc_ok(&p) && gso_run_cut(run, f->data, f->len);
}

static int check_run(struct replay_summary *s, struct gso_packet *run)
{
	struct packet_port_frame packet;
	struct netdev_frame f;
	int rc = 0;

	s->gso_runs++;
	while (!rc && gso_packet_next(run, &packet)) {
		f = (struct netdev_frame){
			.data = packet.data, .len = packet.len, .wire_len = packet.len};
		rc = check_frame(s, &f);
	}
	return rc;
}

static int check_frames(struct replay_summary *s, struct netdev *port)
{
	struct netdev_frame frames[BURST];
	struct gso_packet run;
	uint32_t i, n;
	int rc = gso_packet_create(&run) ? 0 : -ENOMEM;

	while (!rc && (n = netdev_rx(port, 0, frames, BURST)))
		for (i = 0; i < n && !rc; i++)
			rc = cut_run(&run, &frames[i]) ? check_run(s, &run)
						       : check_frame(s, &frames[i]);
	gso_packet_destroy(&run);
	if (rc)
		log_line("no memory to follow the connections of %s", s->file);
	return rc;
}

/* Logs what is wrong with the capture, the gravest fault only; returns the exit status: 0 =
 * nothing. */
static int log_fault(const struct replay_summary *s, const struct netdev *port)
{
	if (netdev_pcap_status(port) < 0)
		log_line("%s: %s", s->file, netdev_pcap_error(port));
	else if (!s->roce)
		log_line("%s has no RoCE packet", s->file);
	else if (s->wrong)
		log_line("%s: the ICRC of %llu packets is wrong", s->file,
			 (unsigned long long)s->wrong);
	else if (s->unverifiable)
		log_line("%s: the ICRC of %llu packets cannot be checked", s->file,
			 (unsigned long long)s->unverifiable);
	else
		return 0;
	return STATUS_FAILED;
}

static int replay_capture(const char *file, bool json)
{
	struct replay_summary s = {.file = file};
	struct netdev *port;
	char error[ERROR_LEN];
	int rc;

	if (netdev_pcap_open(s.file, &port, error, sizeof(error))) {
		log_line("%s", error);
		return STATUS_FAILED;
	}
	s.flows = flow_table_create();
	rc = !s.flows || check_frames(&s, port) ? STATUS_FAILED : 0;
	if (!rc) {
		(json ? replay_summary_print_json : replay_summary_print)(&s);
		fflush(stdout);
		rc = log_fault(&s, port);
	}
	flow_table_destroy(s.flows);
	netdev_close(port);
	return rc;
}

int cmd_replay(int argc, char **argv)
{
	struct replay_engine_options a = {0};
	int rc = parse_replay_arguments(argc, argv, &a);

	if (rc)
		return rc;
	return a.recordings ? cmd_replay_engine(&a) : replay_capture(a.capture, a.json);
}
