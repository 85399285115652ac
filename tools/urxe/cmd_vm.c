/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* urxe vm: the device process of a virtual machine. */
#include "urxe/cmd.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vnic/regs.h>

#include "common/command_line.h"
#include "common/log.h"
#include "common/quantity.h"
#include "common/rundir.h"
#include "urxe/daemon_connect.h"
#include "urxed/hostnet/ether_text.h"
#include "urxed/uplink/vm_port_protocol.h"
#include "vm/device/default_mac.h"
#include "vm/vm.h"

static const char usage[] =
	"usage: urxe vm --socket PATH[,PATH2] [--mac MAC] [--mtu BYTES] [--roce v1|v2]\n"
	"               [--doorbells trapped|mapped] [--name NAME] [--way hca|engine|auto]\n"
	"               [--incoming | --take-over] [--run-dir DIR]\n"
	"Serves a virtual machine of QEMU 10.1 or later as a PCI device with two functions, by\n"
	"vfio-user at two UNIX sockets: a vmxnet3, and the RDMA device PVRDMA. Linux has drivers\n"
	"for both, so the machine needs no software of urxe. The machine is a station of its own\n"
	"on the switch of urxed. If no urxed answers in the run directory, urxe starts a private\n"
	"urxed, which ends after its last program.\n"
	"\n"
	"  --socket PATH[,PATH2]\n"
	"                 sockets of the vmxnet3, function 0, and of the PVRDMA, function 1;\n"
	"                 default of PATH2: PATH.1\n"
	"  --mac MAC      the machine's MAC, as 52:54:00:12:34:56; default: a locally\n"
	"                 administered MAC, made from the host's identity and PATH\n"
	"  --mtu BYTES    the largest MTU that the machine may set, 576 to 9000; default 9000.\n"
	"                 Packets of PVRDMA also fit the MTU of the host's uplinks\n"
	"  --roce v1|v2   version of RoCE that PVRDMA speaks; default v2\n"
	"  --doorbells trapped|mapped\n"
	"                 how PVRDMA learns of requests: trapped (default): from messages of\n"
	"                 QEMU; mapped: from memory that it polls. With mapped the message\n"
	"                 rate is higher, but a message after a pause is up to 1/64 of the pause\n"
	"                 late, and never more than 50 ms\n"
	"  --name NAME    the switch's port is vm:NAME; default: the process's number\n"
	"  --way hca|engine|auto\n"
	"                 executor of the machine's queue pairs if an HCA backs the device and\n"
	"                 has an address of the machine: with auto, the default, the engine for\n"
	"                 machines of this host, and the HCA for peers on other hosts\n"
	"  --incoming     wait for a machine that migrates to this process: it joins the switch\n"
	"                 when its state has arrived. --mac and --roce must equal those of the\n"
	"                 machine's old process\n"
	"  --take-over    replace the urxe vm that serves a machine at PATH: the old process\n"
	"                 ends, and this process serves the machine. Other options must be equal\n"
	"  --run-dir DIR  the daemon's directory; default as for urxed, or that of root's\n"
	"                 daemon if no other daemon runs\n"
	"\n"
	"Runs until SIGTERM or SIGINT, then removes the sockets, or until another process takes\n"
	"over. Exit status: 0; 1 if it cannot start; 2 for a wrong command line.\n";

static const struct option options[] = {
	{"socket", required_argument, NULL, 's'}, {"mac", required_argument, NULL, 'm'},
	{"mtu", required_argument, NULL, 'u'},    {"roce", required_argument, NULL, 'r'},
	{"name", required_argument, NULL, 'n'},   {"doorbells", required_argument, NULL, 'b'},
	{"way", required_argument, NULL, 'w'},    {"incoming", no_argument, NULL, 'i'},
	{"take-over", no_argument, NULL, 't'},    {"run-dir", required_argument, NULL, 'd'},
	{"help", no_argument, NULL, 'h'},         {0}};

#define MTU_MIN 576
/* Longer paths do not fit sockaddr_un. */
#define SOCKET_PATH 108
#define RDMA_SUFFIX ".1"
/* Ends the path of the socket at which the process can be replaced. */
#define REPLACE_SUFFIX ".replace"

struct arguments {
	const char *run_dir;
	bool mac_given;
	struct vm_attr attr;
	char path[SOCKET_PATH], rdma_path[SOCKET_PATH], replace_path[SOCKET_PATH];
};

/* Sets the MAC. Like the other set functions, logs an error and returns false. */
static bool set_mac(struct arguments *a, const char *value)
{
	const char *rest = ether_read_mac(value, a->attr.mac);

	a->mac_given = rest && !*rest && ether_is_station(a->attr.mac);
	if (!a->mac_given)
		log_line("--mac %s is not the MAC of a station; example: 52:54:00:12:34:56", value);
	return a->mac_given;
}

static bool copy_path(char to[SOCKET_PATH], const char *path, size_t len, const char *suffix)
{
	if (len && len + strlen(suffix) < SOCKET_PATH) {
		snprintf(to, SOCKET_PATH, "%.*s%s", (int)len, path, suffix);
		return true;
	}
	log_line("the path of a socket has 1 to %zu characters", SOCKET_PATH - 1 - strlen(suffix));
	return false;
}

static bool set_sockets(struct arguments *a, const char *value)
{
	const size_t len = strcspn(value, ",");
	const char *second = value[len] ? value + len + 1 : NULL;

	a->attr.path = a->path;
	a->attr.rdma_path = a->rdma_path;
	a->attr.replace_path = a->replace_path;
	/* Copies the longest suffix first: if the path is too long, the error tells the length that
	 * fits with it. */
	return copy_path(a->replace_path, value, len, REPLACE_SUFFIX) &&
	       copy_path(a->path, value, len, "") &&
	       (second ? copy_path(a->rdma_path, second, strlen(second), "")
		       : copy_path(a->rdma_path, value, len, RDMA_SUFFIX));
}

static bool set_roce(struct arguments *a, const char *value)
{
	a->attr.roce_v1 = !strcmp(value, "v1");
	if (a->attr.roce_v1 || !strcmp(value, "v2"))
		return true;
	log_line("--roce is v1 or v2, not %s", value);
	return false;
}

static bool set_mtu(struct arguments *a, const char *value)
{
	uint64_t mtu;

	if (!quantity_read(value, quantity_count, &mtu) || mtu < MTU_MIN || mtu > VM_PORT_MTU) {
		log_line("--mtu %s is not a number of bytes from %d to %d", value, MTU_MIN,
			 VM_PORT_MTU);
		return false;
	}
	a->attr.mtu = (uint16_t)mtu;
	return true;
}

static bool set_name(struct arguments *a, const char *value)
{
	if (!*value || strlen(value) >= VM_PORT_NAME) {
		log_line("--name has 1 to %d characters", VM_PORT_NAME - 1);
		return false;
	}
	a->attr.name = value;
	return true;
}

static bool set_doorbells(struct arguments *a, const char *value)
{
	a->attr.map_doorbells = !strcmp(value, "mapped");
	if (a->attr.map_doorbells || !strcmp(value, "trapped"))
		return true;
	log_line("--doorbells is trapped or mapped, and not %s", value);
	return false;
}

static bool set_way(struct arguments *a, const char *value)
{
	if (hca_way_read(value, &a->attr.way))
		return true;
	log_line("--way is hca, engine or auto, and not %s", value);
	return false;
}

static bool set_option(struct arguments *a, int opt, const char *value)
{
	switch (opt) {
	case 's': return set_sockets(a, value);
	case 'r': return set_roce(a, value);
	case 'm': return set_mac(a, value);
	case 'u': return set_mtu(a, value);
	case 'n': return set_name(a, value);
	case 'b': return set_doorbells(a, value);
	case 'w': return set_way(a, value);
	case 'i': a->attr.incoming = true; return true;
	case 't': a->attr.take_over = true; return true;
	default: a->run_dir = value; return true;
	}
}

static bool parse_vm_arguments(int argc, char **argv, struct arguments *a)
{
	int opt, at = optind;

	for (; (opt = getopt_long(argc, argv, ":", options, NULL)) != -1; at = optind) {
		switch (opt) {
		case 'h': fputs(usage, stdout); exit(0);
		case ':':
		case '?': log_bad_option("urxe vm", opt, argv, at); return false;
		default:
			if (!set_option(a, opt, optarg))
				return false;
		}
	}
	if (optind < argc)
		log_line("unexpected argument %s; see urxe vm --help", argv[optind]);
	else if (!a->attr.path)
		log_line("vm needs --socket PATH; see urxe vm --help");
	else if (a->attr.incoming && a->attr.take_over)
		log_line("--incoming and --take-over exclude each other; see urxe vm --help");
	else
		return true;
	return false;
}

/* Starts the device process. Returns 0; another number after an error, which is logged. The
 * connection keeps a private daemon alive until the device process has connections of its own. */
static int start_vm(const struct vm_attr *attr, struct vm **vm)
{
	char error[VM_ERROR];
	int daemon = daemon_connect(attr->run_dir, &(struct daemon_start_options){0}), rc;

	if (daemon < 0)
		return -1;
	rc = vm_create(attr, vm, error);
	close(daemon);
	if (rc)
		log_line("%s", error);
	return rc;
}

int cmd_vm(int argc, char **argv)
{
	char run_dir[RUNDIR_MAX], error[RUNDIR_ERROR];
	struct arguments a = {.attr = {.run_dir = run_dir, .name = "", .mtu = VM_PORT_MTU}};
	struct vm *vm;

	if (!parse_vm_arguments(argc, argv, &a))
		return STATUS_USAGE;
	if (daemon_choose_run_dir(a.run_dir, run_dir, error)) {
		log_line("%s", error);
		return STATUS_USAGE;
	}
	if (!a.mac_given)
		default_mac(a.attr.path, a.attr.mac);
	if (start_vm(&a.attr, &vm))
		return STATUS_FAILED;
	if (vm_run(vm))
		vm_destroy(vm);
	return 0;
}
