/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Passes changes of the port's addresses, P_Keys, MTU and state from the daemon to the engine and
 * the contexts. Functions need adapter.lock. */
#ifndef URXE_VERBS_DAEMON_PORT_ATTRIBUTES_H
#define URXE_VERBS_DAEMON_PORT_ATTRIBUTES_H

#include <stdbool.h>
#include <stdint.h>

struct vnic_attach_port;

/*
 * The daemon has sent new attributes of the port, without P_Keys. Passes the GIDs and the MTU to
 * the engine, the GIDs and hca.down to the HCA, stores all in adapter.welcome.port, and sends the
 * contexts events for changes of GIDs and of the port's state.
 */
void port_changed(const struct vnic_attach_port *now);
/* Passes the GIDs, P_Keys and link MTU in adapter.welcome to the engine. 0 or a negative errno
 * value. */
int port_set_attributes(void);
/* Whether the GID is one of adapter.welcome.port.gids, so an address of this host. */
bool port_has_gid(const uint8_t raw[16]);
/* The daemon's P_Key table was `before`, with VNIC_ATTACH_PKEYS entries: if adapter.welcome has
 * another one, passes it to the engine and the HCA, and sends the contexts an event. The engine
 * keeps an entry that has become empty while a QP uses it. */
void port_pkeys_changed(const uint16_t *before);

#endif
