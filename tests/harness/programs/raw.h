/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Attaches to urxed's switch without libibverbs and the engine, to send and receive any frame. Each
 * function exits on failure. One thread.
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
/* A packet from this host to itself; the caller sets the other fields. */
struct urxe_packet raw_packet(const struct raw *raw);
void raw_send_frame(struct raw *raw, const uint8_t *frame, uint32_t len);
void raw_send(struct raw *raw, const struct urxe_packet *p);
/* Copies the next frame and returns its length, or 0 if none arrives within the time. */
uint32_t raw_receive(struct raw *raw, uint8_t frame[CRAFT_MAX], int milliseconds);

#endif
