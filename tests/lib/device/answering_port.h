/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A port of netdev/ without frames, which has each operation that describes or configures a device.
 * The answers differ from those of a port without the operation.
 */
#ifndef URXE_TEST_ANSWERING_PORT_H
#define URXE_TEST_ANSWERING_PORT_H

#include <netdev/netdev.h>

#define ANSWERING_WAIT_FD   1000
#define ANSWERING_MAC_BYTE  0x42 /* each byte of its MAC */
#define ANSWERING_MTU       1234
#define ANSWERING_PAGE_SIZE (2u << 20)
#define ANSWERING_RECEIVED  99 /* its counter NETDEV_RX_FRAMES */

/*
 * The one port, which is not up. The functions that configure it return: minus the last byte of the
 * MAC, minus the VLAN, -EIO for all multicast frames, -EPERM to make it promiscuous and -EBUSY to
 * end that.
 */
struct netdev *answering_port(void);

#endif
