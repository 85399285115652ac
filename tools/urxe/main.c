/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* urxe, the command line tool: calls the subcommand that argv[1] names. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/command_line.h"
#include "common/log.h"
#include "common/standard_fds.h"
#include "urxe/cmd.h"

static const struct command {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *args;
	const char *text;
} commands[] = {
	{"run", cmd_run, "[--] CMD [ARG]...", "run a program with the RDMA device urxe0"},
	{"vm", cmd_vm, "--socket PATH...",
	 "serve a virtual machine as its vmxnet3 and RDMA device"},
	{"show", cmd_show, "[TOPIC] [--json]", "show what the daemon and its processes do"},
	{"doctor", cmd_doctor, "[--json]",
	 "check what programs need of this host, and tell repairs"},
	{"capture", cmd_capture, "[-w FILE]...", "show frames at the switch's ports, or save them"},
	{"replay", cmd_replay, "FILE [--json]",
	 "check and summarize the RoCE packets of a capture"},
	{"bench", cmd_bench, "--port SPEC...", "measure the engine and a frame port in one thread"},
	{"sim", cmd_sim, "[OPTION]...", "simulate hosts on a lossy network, and check the engines"},
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static int print_help(void)
{
	size_t i;

	puts("usage: urxe COMMAND [ARG]...\n");
	for (i = 0; i < N_COMMANDS; i++)
		printf("  %-7s %-18s %s\n", commands[i].name, commands[i].args, commands[i].text);
	puts("\nurxe COMMAND --help explains a command; urxe --version prints the version.");
	return 0;
}

int main(int argc, char **argv)
{
	size_t i;

	standard_fds_fill();
	standard_fds_check_output();
	if (argc < 2 || !strcmp(argv[1], "--help") || !strcmp(argv[1], "help"))
		return print_help();
	if (!strcmp(argv[1], "--version")) {
		puts("urxe " URXE_VERSION);
		return 0;
	}
	for (i = 0; i < N_COMMANDS; i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].main(argc - 1, argv + 1);
	log_line("unknown command %s; urxe --help lists the commands", argv[1]);
	return STATUS_USAGE;
}
