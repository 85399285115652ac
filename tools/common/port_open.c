/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "common/port_open.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <netdev/netdev.h>

#include "common/install_paths.h"
#include "urxed/hostnet/host.h"
#include "urxed/uplink/vm_port_protocol.h"

bool port_is_xdp(const char *spec)
{
	return !strncmp(spec, "af_xdp:", 7);
}

/* Opens af_xdp: with urxe's own XDP program, unless the specification names another one. */
static int open_xdp(const char *spec, struct netdev **port, char error[PORT_OPEN_ERROR])
{
	char program[PATH_MAX], whole[PATH_MAX + PORT_OPEN_ERROR],
		text[PATH_MAX + 2 * PORT_OPEN_ERROR];
	size_t len;
	int rc;

	if (strstr(spec, ",xdp_prog="))
		return netdev_dpdk_open(spec, HOST_MTU, port, error, PORT_OPEN_ERROR);
	if (install_path_roce_xdp(program)) {
		snprintf(error, PORT_OPEN_ERROR,
			 "%s: this build has no XDP program of its own (it found no compiler for "
			 "BPF): name a program that redirects only RoCE by ,xdp_prog=FILE",
			 spec);
		return -ENOENT;
	}
	snprintf(whole, sizeof(whole), "%s,xdp_prog=%s", spec, program);
	rc = netdev_dpdk_open(whole, HOST_MTU, port, text, sizeof(text));
	if (!rc)
		return 0;
	/* The sentence begins with the extended specification: replaces it by the user's. */
	len = strlen(whole);
	if (strncmp(text, whole, len))
		snprintf(error, PORT_OPEN_ERROR, "%.*s", PORT_OPEN_ERROR - 1, text);
	else
		snprintf(error, PORT_OPEN_ERROR, "%s%.*s", spec, PORT_OPEN_ERROR - 1, text + len);
	return rc;
}

int port_open(const char *spec, struct netdev **port, char error[PORT_OPEN_ERROR])
{
	if (!strncmp(spec, "qemu:", 5))
		return netdev_qemu_open(spec, HOST_MTU, port, error, PORT_OPEN_ERROR);
	if (port_is_xdp(spec))
		return open_xdp(spec, port, error);
	return netdev_dpdk_open(spec, strncmp(spec, "af_packet:", 10) ? HOST_MTU : VM_PORT_MTU,
				port, error, PORT_OPEN_ERROR);
}
