/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "daemon/port_uplink.h"

#include <errno.h>
#include <string.h>

#include "engine/clock.h"
#include "poll/engine_run.h"
#include "poll/engine_thread.h"
#include "poll/polling.h"
#include "poll/receiving_member.h"
#include "port/port.h"
#include "process/log.h"

static int accept_leased_qpns(const struct packet_group *uplink)
{
	uint16_t blocks[VNIC_LEASES_MAX];

	for (uint32_t i = 0; i < port.leases.n; i++)
		blocks[i] = (uint16_t)(port.leases.blocks[i]->qpn_first >> PACKET_PORT_QPN_SHIFT);
	return packet_group_accept(uplink, blocks, port.leases.n);
}

void port_accept_uplink(void)
{
	int rc = port.uplink ? accept_leased_qpns(port.uplink) : 0;

	if (rc)
		log_error("cannot set the filter of the direct uplink: %s", strerror(-rc));
}

/*
 * The old socket stops before the new one starts, so that no frame comes twice; frames in between
 * are lost. Frames in the old ring are received first.
 */
static void replace_uplink(struct packet_group *uplink)
{
	struct packet_group *old = port.uplink;

	if (old) {
		tx_send_ack(&port.tx);
		packet_group_accept(old, NULL, 0);
		engine_receive_uplink(clock_now());
	}
	port.uplink = uplink;
	receiving_member_forget();
	port_accept_uplink();
	packet_group_close(old);
	if (uplink && port_polling.irq_on && packet_group_irq_unmask(uplink))
		engine_thread_wake();
}

static int open_uplink(struct vnic_driver *nic, struct packet_group **uplink)
{
	struct vnic_attach_uplink answer;
	int fds[VNIC_UPLINK_SOCKETS], n = vnic_driver_uplink(nic, &answer, fds), rc;
	const struct packet_port_ring ring = {answer.frame_size, answer.blocks};

	if (n < 0)
		return n;
	rc = packet_group_open(fds, (uint32_t)n, &ring, uplink);
	if (rc)
		vnic_driver_decline_uplink(nic, rc);
	return rc;
}

/* An answer that did not come in time ends the connection, too. */
static bool is_lost_daemon(int rc)
{
	return rc == -ECONNRESET || rc == -EPIPE || rc == -ETIMEDOUT;
}

/*
 * The kernel takes up to 100 ms for a ring. Meanwhile frames leave by the switch: the old socket
 * may be on an interface that carries nothing any more, as a former member of a bond.
 */
static int open_uplink_unlocked(struct packet_group **uplink)
{
	struct vnic_driver *nic = port.nic;
	int rc;

	tx_pause_uplink(&port.tx, true);
	port_unlock();
	rc = open_uplink(nic, uplink);
	port_claim();
	tx_pause_uplink(&port.tx, false);
	return rc;
}

void port_renew_uplink(void)
{
	struct packet_group *uplink = NULL;
	const uint8_t generation = port.welcome.port.uplink_generation;
	int rc;

	port.uplink_generation = generation;
	port.uplink_inherited = false;
	rc = generation ? open_uplink_unlocked(&uplink) : 0;
	/* The next daemon is asked again; until then the old socket goes on. */
	if (is_lost_daemon(rc))
		return;
	if (rc)
		log_info("frames to other hosts go by the switch: %s", strerror(-rc));
	replace_uplink(uplink);
}

bool port_uplink_stale(void)
{
	return port.uplink_inherited ||
	       port.uplink_generation != port.welcome.port.uplink_generation;
}

void port_close_uplink(void)
{
	packet_group_close(port.uplink);
	port.uplink = NULL;
	port.uplink_generation = 0;
	port.uplink_inherited = false;
}
