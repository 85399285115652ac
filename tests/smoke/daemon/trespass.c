/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A user of root's daemon attacks another user's queue pairs: it registers all their remote queue
 * pairs before they do, and sends UC packets to them. Neither may have an effect. daemon.py runs it
 * as root, with the run directory.
 */
#include <err.h>
#include <grp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "raw.h"

#define UC_SEND_ONLY 0x24
#define NOBODY       65534
#define PATIENCE_MS  60000
#define QUIET_MS     200
#define PAIRS        VNIC_LEASE_QPNS

/* An address of another host. */
static const uint8_t elsewhere[16] = {0xfe, 0x80, [15] = 0x99};

static struct raw victim, intruder;

/* The daemon takes the user from the credentials of the connecting thread. */
static void attach_intruder(const char *run_dir)
{
	char path[4096];
	struct stat st;

	snprintf(path, sizeof(path), "%s/" VNIC_SOCKET_NAME, run_dir);
	if (stat(path, &st) || setgroups(0, NULL) || setegid(st.st_gid) || seteuid(NOBODY))
		err(1, "cannot become another user");
	raw_open(&intruder, run_dir);
	if (seteuid(0))
		err(1, "seteuid");
}

static void connect_qp(struct raw *raw, uint32_t local, const uint8_t gid[16], uint32_t qpn)
{
	int rc = vnic_driver_register(raw->drv, raw->who.qpn_first + local, gid, qpn);

	if (rc)
		errx(1, "cannot connect to QP %#x: %s", qpn, strerror(-rc));
}

/* All queue pairs of the victim, and as many of another host. */
static void squat(const uint8_t own[16])
{
	for (uint32_t i = 0; i < PAIRS; i++) {
		connect_qp(&intruder, i, own, victim.who.qpn_first + i);
		connect_qp(&intruder, i, elsewhere, 0x1000 + i);
	}
}

static void send_to(struct raw *from, uint32_t qpn, uint8_t content)
{
	struct urxe_packet p = raw_packet(from);
	const uint8_t payload[16] = {content};

	p.opcode = UC_SEND_ONLY;
	p.dest_qpn = qpn;
	p.payload = payload;
	p.payload_len = sizeof(payload);
	raw_send(from, &p);
}

static void expect_own_packet(void)
{
	uint8_t frame[CRAFT_MAX];
	struct urxe_packet p;
	uint32_t len = raw_receive(&victim, frame, PATIENCE_MS);

	if (!len || urxe_packet_parse(&p, frame, len) != URXE_DROP_NONE)
		errx(1, "the victim's own packet does not arrive");
	if (p.payload[0] != 'v')
		errx(1, "a packet of the intruder arrived");
}

int main(int argc, char **argv)
{
	uint8_t frame[CRAFT_MAX];
	struct urxe_packet p;
	uint32_t first;

	if (argc != 2)
		errx(2, "usage: trespass RUN_DIR");
	raw_open(&victim, argv[1]);
	attach_intruder(argv[1]);
	first = victim.who.qpn_first;
	p = raw_packet(&victim);
	squat(p.dgid.raw);
	connect_qp(&victim, 0, p.dgid.raw, first + 1);
	connect_qp(&victim, 1, p.dgid.raw, first);
	connect_qp(&victim, 2, elsewhere, 0x1002);
	for (uint32_t i = 0; i < 4; i++)
		send_to(&intruder, first + i, 'i');
	if (raw_receive(&victim, frame, QUIET_MS))
		errx(1, "a packet of the intruder arrived");
	send_to(&victim, first + 1, 'v');
	expect_own_packet();
	raw_close(&intruder);
	raw_close(&victim);
	return 0;
}
