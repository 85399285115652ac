/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef URXE_CAPTURE_GSO_RUN_H
#define URXE_CAPTURE_GSO_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include <netdev/gso_packet.h>

/*
 * Cuts a captured UDP GSO packet into its RoCE packets, as the kernel or the NIC does before it
 * sends them (rxe/wire/gso_run.h). A capture has no virtio-net header that says where to cut: a
 * second BTH of the same queue pair tells that. gso_packet_next() gives the packets; each is valid
 * until the next call. False: no second BTH names the first one's queue pair, or the first packet's
 * ICRC is wrong at each possible cut. cmd_replay.c calls this.
 */
bool gso_run_cut(struct gso_packet *packet, const uint8_t *frame, uint32_t len);

#endif
