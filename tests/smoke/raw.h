/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A process on urxed's switch that sends and receives frames of its own making, past libibverbs and
 * the engine. Each function exits on failure; one thread.
 */
#ifndef URXE_TEST_RAW_H
#define URXE_TEST_RAW_H

#include <stdint.h>

#include <vnic/driver.h>

#include "craft.h"

#define RAW_GID_INDEX 1 /* IPv4 */

struct raw {
	struct vnic_attach_welcome who;
	struct vnic_driver *drv;
};

void raw_open(struct raw *raw, const char *run_dir);
void raw_close(struct raw *raw);
/* Addressed to the own host, from it; the rest is for the caller to fill. */
struct urxe_packet raw_packet(const struct raw *raw);
void raw_send_frame(struct raw *raw, const uint8_t *frame, uint32_t len);
void raw_send(struct raw *raw, const struct urxe_packet *p);
/* The next frame, copied; waits for one for so long. 0: none came, else its length in bytes. */
uint32_t raw_receive(struct raw *raw, uint8_t frame[CRAFT_MAX], int milliseconds);

#endif
