/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The part of urxe_packet_parse that is about the transport's headers. */
#ifndef URXE_PARSE_H
#define URXE_PARSE_H

#include <rxe/packet.h>

/* Takes apart what lies between `bth` and `end`, the end by the network header. */
enum urxe_drop parse_transport(struct urxe_packet *p, const uint8_t *bth, const uint8_t *end);

#endif
