/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A host that is no more than a RoCE engine and a frame port, in one thread, without daemon and NIC
 * in between.
 *
 * Two stations on one link find each other by themselves: a station's address is made of its MAC,
 * its queue pairs' numbers and its key are the same everywhere. The one that connects sends a
 * datagram to all nodes of the link, whose immediate data is a token; the one that listens connects
 * its queue pair to the sender and answers with the token.
 */
#ifndef URXE_BENCH_STATION_H
#define URXE_BENCH_STATION_H

#include <stdbool.h>
#include <stdint.h>

struct netdev;

#define STATION_MEMORY (8u << 20) /* bytes of a message at most, and of what peers may write */
#define STATION_SENDS  128        /* requests that may be outstanding */

struct station;

/* Takes the port over, also on error. 0 or a negative errno value. */
int station_create(struct netdev *port, bool listens, struct station **station);
/* Closes the port, too. */
void station_destroy(struct station *station);

/*
 * Takes frames in and gives frames out, once. One that listens echoes each SEND with one of its
 * length, and sleeps for 20 ms at a time where nothing has come for 100.
 */
void station_turn(struct station *station);

/* Sends a greeting; a later one of the same station is another connection. */
void station_greet(struct station *station);
/* That it was answered, and the connection stands. */
bool station_connected(const struct station *station);
/* enum urxe_wc_status of a request that failed; 0 = none did. */
uint32_t station_failed(const struct station *station);

/* Posts a request of `length` bytes: a SEND, or a WRITE to the start of the peer's memory. */
int station_send(struct station *station, uint32_t length);
int station_write(struct station *station, uint32_t length);
/* Requests that have completed so far, those that have not, and SENDs of the peer that have come.
 */
uint64_t station_completed(const struct station *station);
uint64_t station_outstanding(const struct station *station);
uint64_t station_received(const struct station *station);

#endif
