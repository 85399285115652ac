/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "raw.h"

#include <err.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

void raw_open(struct raw *raw, const char *run_dir)
{
	if (vnic_driver_attach(run_dir, &raw->who, &raw->drv))
		errx(1, "cannot attach");
}

void raw_close(struct raw *raw)
{
	vnic_driver_detach(raw->drv);
}

struct urxe_packet raw_packet(const struct raw *raw)
{
	struct urxe_packet p = {
		.net = URXE_NET_IPV4,
		.pkey = URXE_DEFAULT_PKEY,
		.hop_limit = 64,
	};

	memcpy(p.dmac, raw->who.mac, sizeof(p.dmac));
	memcpy(p.smac, raw->who.mac, sizeof(p.smac));
	memcpy(p.sgid.raw, raw->who.port.gids[RAW_GID_INDEX].raw, sizeof(p.sgid.raw));
	p.dgid = p.sgid;
	return p;
}

void raw_send_frame(struct raw *raw, const uint8_t *frame, uint32_t len)
{
	struct vnic_frame buffer;

	if (!vnic_driver_tx_reserve(raw->drv, &buffer, 1))
		errx(1, "no transmit buffer");
	buffer.len = len;
	memcpy(buffer.data, frame, len);
	vnic_driver_tx_commit(raw->drv, &buffer, 1);
}

void raw_send(struct raw *raw, const struct urxe_packet *p)
{
	uint8_t frame[CRAFT_MAX];

	raw_send_frame(raw, frame, craft_frame(frame, p));
}

static uint32_t take(struct raw *raw, uint8_t frame[CRAFT_MAX])
{
	struct vnic_frame buffer;
	uint32_t len;

	if (!vnic_driver_rx(raw->drv, &buffer, 1))
		return 0;
	len = buffer.len;
	if (len > CRAFT_MAX)
		errx(1, "a frame of %u bytes", len);
	memcpy(frame, buffer.data, len);
	vnic_driver_rx_release(raw->drv, 1);
	return len;
}

uint32_t raw_receive(struct raw *raw, uint8_t frame[CRAFT_MAX], int milliseconds)
{
	struct pollfd pfd = {vnic_driver_irq_fd(raw->drv), POLLIN, 0};
	uint64_t interrupts;
	uint32_t len;

	while (!(len = take(raw, frame))) {
		if (vnic_driver_irq_unmask(raw->drv))
			continue;
		if (!poll(&pfd, 1, milliseconds))
			break;
		if (read(pfd.fd, &interrupts, sizeof(interrupts)) < 0)
			err(1, "the NIC");
	}
	return len;
}
