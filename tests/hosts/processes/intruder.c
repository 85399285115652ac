/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A user of root's daemon attacks another user's connection to another host: it registers the
 * remote queue pair, and sends RC and UC packets to it.
 *
 *   intruder RUN_DIR ADDRESS QPN MAC
 *
 * The IPv4 address, queue pair number and MAC are those of the remote queue pair. direct_uplink.py
 * runs it as root.
 */
#include <arpa/inet.h>
#include <err.h>
#include <grp.h>
#include <netinet/ether.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "raw.h"

#define NOBODY       65534
#define RC_SEND_ONLY 0x04
#define UC_SEND_ONLY 0x24

/* The daemon takes the user from the credentials of the connecting thread. */
static void attach(struct raw *raw, const char *run_dir)
{
	char path[4096];
	struct stat st;

	snprintf(path, sizeof(path), "%s/" VNIC_SOCKET_NAME, run_dir);
	if (stat(path, &st) || setgroups(0, NULL) || setegid(st.st_gid) || seteuid(NOBODY))
		err(1, "cannot become another user");
	raw_open(raw, run_dir);
	if (seteuid(0))
		err(1, "seteuid");
}

int main(int argc, char **argv)
{
	static const uint8_t opcodes[] = {RC_SEND_ONLY, UC_SEND_ONLY};
	const struct ether_addr *mac;
	struct urxe_packet p;
	struct raw raw;

	if (argc != 5)
		errx(2, "usage: intruder RUN_DIR ADDRESS QPN MAC");
	attach(&raw, argv[1]);
	p = raw_packet(&raw);
	mac = ether_aton(argv[4]);
	if (!mac || inet_pton(AF_INET, argv[2], p.dgid.raw + 12) != 1)
		errx(2, "no address: %s, %s", argv[2], argv[4]);
	memcpy(p.dmac, mac, sizeof(p.dmac));
	p.dest_qpn = (uint32_t)strtoul(argv[3], NULL, 0);
	if (vnic_driver_register(raw.drv, raw.who.qpn_first, p.dgid.raw, p.dest_qpn))
		errx(1, "cannot register");
	for (uint32_t i = 0; i < sizeof(opcodes); i++) {
		p.opcode = opcodes[i];
		raw_send(&raw, &p);
	}
	/* The daemon forwards what was posted before the process detaches. */
	raw_close(&raw);
	return 0;
}
