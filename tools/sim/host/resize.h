/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Resized SRQs (--resizes): at a random moment the application resizes an SRQ and changes its
 * limit, to values that the engine has to refuse as well. check/srq.c checks the results.
 */
#ifndef URXE_SIM_HOST_RESIZE_H
#define URXE_SIM_HOST_RESIZE_H

struct recv_queue;
struct world;

/* Chooses the SRQs that are resized. */
void resize_plan(struct world *world);
/* The application's turn: may resize the queue and change its limit. */
void resize_turn(struct recv_queue *recv_queue);

#endif
