/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A RoCE engine on a frame port, in one thread, without daemon and vNIC. bench.c measures it.
 *
 * Two stations on one link need no configuration: a station's GID is made from its MAC, and all
 * stations use the same QPNs and key. The connecting station sends a datagram to all nodes of the
 * link (the greeting), whose immediate data is a token. The listening station connects its queue
 * pair to the sender and answers with the token.
 */
#ifndef URXE_BENCH_STATION_H
#define URXE_BENCH_STATION_H

#include <stdbool.h>
#include <stdint.h>

struct netdev;

#define STATION_MEMORY (8u << 20) /* bytes: the longest message, and room for the peer's WRITEs */
#define STATION_SENDS  128        /* requests that may be outstanding */

struct station;

/*
 * Creates a station on the port, which it closes in the end, also on error. Returns 0 or a negative
 * errno value.
 */
int station_create(struct netdev *port, bool listens, struct station **station);
/* Destroys the station, and closes its port. */
void station_destroy(struct station *station);

/*
 * Receives a burst of frames, and sends those that are due. A listening station answers each SEND
 * with a SEND of the same length. It sleeps for 20 ms if no frame has arrived for 100 ms, unless
 * the engine has a deadline within that sleep.
 */
void station_turn(struct station *station);

/* Sends a greeting with a new token. The answer to it connects the queue pair. */
void station_greet(struct station *station);
/* True: the greeting was answered, and the QP is connected. */
bool station_connected(const struct station *station);
/* The errno value of the last attempt to connect the queue pair to a peer; 0 = the attempt
 * succeeded, or the station has made none. */
int station_connect_error(const struct station *station);
/* Status (enum urxe_wc_status) of the last request that failed and was not flushed; 0 = none. */
uint32_t station_failed(const struct station *station);

/*
 * Post a request of `length` bytes: a SEND, or a WRITE to the start of the peer's memory. Return 0
 * or a negative errno value.
 */
int station_send(struct station *station, uint32_t length);
int station_write(struct station *station, uint32_t length);
/* Numbers of completed requests, of outstanding requests, and of SENDs received from the peer. */
uint64_t station_completed(const struct station *station);
uint64_t station_outstanding(const struct station *station);
uint64_t station_received(const struct station *station);

#endif
