/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Replaces, in answers and events of the kernel's rdma_cm, the HCA that backs urxe0 by urxe0: node
 * GUID and device index, port number, and indices in the tables of GIDs and P_Keys. So librdmacm
 * gives the program the context of urxe0. The daemon writes VNIC_HCA_FILE, which maps the tables.
 * QPNs need no replacement: the kernel's rdma_cm takes any number that the program gives.
 *
 * The first answer that names the device of an ID decides for the whole life of the ID: its device
 * is urxe0 if the HCA's port is the one that backs urxe0, and urxe0 has the source GID of the ID.
 * Else, or if VNIC_HCA_FILE has the line "closed", it is the kernel's device. A connection request
 * at the port of its listener has the listener's device, unless urxe0 lacks the request's GID.
 *
 * All functions: with file->lock.
 */
#ifndef URXE_VERBS_RDMACM_HCA_ANSWER_H
#define URXE_VERBS_RDMACM_HCA_ANSWER_H

#include "rdmacm/ids.h"

/*
 * Changes *response, the kernel's answer to a command of `id` that has succeeded. 0, or a negative
 * errno value, for instance -EMFILE: VNIC_HCA_FILE or the HCA's GID table cannot be read.
 */
int rdmacm_hca_answer(struct rdmacm_id *id, const struct rdmacm_request *request,
		      struct rdmacm_response *response);
/*
 * Decides the device of `id`, a connection request, from *query: the kernel's answer to QUERY
 * (RDMA_USER_CM_QUERY_ADDR) of it. `listener` NULL: unknown. If the device cannot be decided, the
 * first answer for `id` decides it.
 */
void rdmacm_hca_take_request(struct rdmacm_id *id, struct rdmacm_id *listener,
			     const struct rdmacm_response *query);
/*
 * Whether *query, the kernel's answer to QUERY (RDMA_USER_CM_QUERY_ADDR), names another device or
 * port than the one that backs urxe0. False if it names none, if no HCA backs urxe0 yet, or if
 * VNIC_HCA_FILE cannot be read.
 */
bool rdmacm_hca_is_other(const struct rdmacm_response *query);
/* Changes *response, an event of the kernel with the kernel's numbers of ID and group. */
void rdmacm_hca_answer_event(struct rdmacm_file *file, struct rdmacm_response *response);

#endif
