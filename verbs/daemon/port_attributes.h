/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Addresses, P_Keys and MTU of the port: the engine and the contexts follow the daemon. With the
 * lock. */
#ifndef URXE_VERBS_DAEMON_PORT_ATTRIBUTES_H
#define URXE_VERBS_DAEMON_PORT_ATTRIBUTES_H

struct vnic_attach_port;

/* The daemon has sent new attributes of the port: contexts get events for the changes. */
void port_changed(const struct vnic_attach_port *now);
/* Passes the GIDs, P_Keys and MTU in adapter.welcome to the engine. */
int port_set_attributes(void);
int port_set_pkeys(void);

#endif
