/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Changed attributes (--changes): at a random moment the application changes the RNR timer of an RC
 * end, withdraws its remote rights and grants them again later, changes the timeout and the retries
 * of its drained send queue, or registers the host's memory region again with the same rights.
 */
#ifndef URXE_SIM_HOST_CHANGE_H
#define URXE_SIM_HOST_CHANGE_H

#include <stdbool.h>

#include <rxe/rxe.h>

struct endpoint;
struct world;

struct change {
	uint64_t times; /* changes still to come */
	/* The remote rights are withdrawn: the peer had no request outstanding, and posts none
	 * until the rights are granted again. */
	bool withdrawn;
	struct urxe_qp_attr attr; /* the attributes that the application has set last */
};

/* Chooses the ends whose attributes change. */
void change_plan(struct world *world);
/* The application's turn: may change attributes of the end, or register its host's memory again. */
void change_turn(struct endpoint *end);

#endif
