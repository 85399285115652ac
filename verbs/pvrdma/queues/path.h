/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Converts PVRDMA's addresses of peers to the engine's paths: address vectors of datagrams, and the
 * address attributes of connections. */
#ifndef URXE_PVRDMA_PATH_H
#define URXE_PVRDMA_PATH_H

#include "pvrdma_device.h"

/*
 * Set *path for an address vector of a datagram, or for the attributes of a connection. False: the
 * device has no such GID; the address vector names another port, or a protection domain that is not
 * `pd`; or the attributes have no GRH.
 */
bool pv_path_of_av(const struct pvrdma *dev, const struct pv_pd *pd, const struct pvrdma_av *av,
		   struct urxe_path *path);
bool pv_path_of_attr(const struct pvrdma *dev, const struct pv_ah_attr *attr,
		     struct urxe_path *path);
/* The reverse of pv_path_of_attr, for QUERY_QP. */
void pv_path_to_attr(const struct urxe_path *path, struct pv_ah_attr *attr);

#endif
