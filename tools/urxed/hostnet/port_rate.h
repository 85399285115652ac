/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The rate of the RDMA port: link width, and speed of one lane, in the codes of ibv_query_port and
 * sysfs. Programs such as UCX choose between the device and shared memory by this rate. */
#ifndef URXE_URXED_HOSTNET_PORT_RATE_H
#define URXE_URXED_HOSTNET_PORT_RATE_H

#include <stdbool.h>
#include <stdint.h>

#define PORT_RATE_TEXT 32

struct port_rate {
	uint8_t width; /* LinkWidthActive (IBA 14.2.5.6); 0 = unknown */
	uint8_t speed; /* LinkSpeedActive, of one lane */
};

/* Rate of a host without an uplink: 10 Gb/s, 4X SDR. */
extern const struct port_rate port_rate_default;

static inline bool port_rate_same(struct port_rate a, struct port_rate b)
{
	return a.width == b.width && a.speed == b.speed;
}

/* Returns the rate that rdma_rxe of newer kernels reports on an interface of that speed in Mb/s. */
struct port_rate port_rate_of_link(uint32_t mbps);
/* Reads a rate from the kernel's text in sysfs, such as "2.5 Gb/sec (1X SDR)". Returns width 0 if
 * it is unknown. */
struct port_rate port_rate_parse(const char *text);
/* Writes the kernel's text for a known rate into `text`. */
void port_rate_print(struct port_rate rate, char text[PORT_RATE_TEXT]);
/* Returns enum ib_rate for path records, as Linux' rdma_cm fills it in for RoCE: at most 40 Gb/s,
 * and 0 (IB_RATE_PORT_CURRENT) below 10 Gb/s. */
uint8_t port_rate_of_path(struct port_rate rate);

#endif
