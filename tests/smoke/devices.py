#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What ibv_devices and ibv_devinfo -v say of the device."""
import re
import sys

from host import Failure, Host, main

INFO = [
    r'hca_id:\turxe0$',
    r'transport:\s+InfiniBand',
    r'phys_port_cnt:\s+1$',
    r'max_qp:\s+[1-9]\d{2,}$',
    r'max_mr_size:\s+0x[1-9a-f]',
    r'atomic_cap:\s+ATOMIC_HCA',
    r'state:\s+PORT_ACTIVE \(4\)$',
    r'max_mtu:\s+4096',
    r'active_mtu:\s+4096',
    r'link_layer:\s+Ethernet$',
    # Link-local IPv6, IPv4 and ULA IPv6, as RoCEv2 and then as RoCEv1.
    r'GID\[ *0\]:\s+fe80:.*RoCE v2$',
    r'GID\[ *1\]:\s+::ffff:169\.254\.\d+\.\d+, RoCE v2$',
    r'GID\[ *2\]:\s+fd[0-9a-f]{2}:.*RoCE v2$',
    r'GID\[ *16\]:\s+fe80:.*RoCE v1$',
    r'GID\[ *17\]:.*RoCE v1$',
    r'GID\[ *18\]:\s+fd[0-9a-f]{2}:.*RoCE v1$',
]


def run():
    with Host(sys.argv[1]) as host:
        listing = host.run('ibv_devices')
        if not re.search(r'^\s+urxe0\s+[0-9a-f]{16}$', listing, re.MULTILINE):
            raise Failure(f'ibv_devices does not list urxe0:\n{listing}')
        info = host.run('ibv_devinfo', '-v', '-d', 'urxe0')
        print(listing, info)
        for pattern in INFO:
            if not re.search(pattern, info, re.MULTILINE):
                raise Failure(f'ibv_devinfo -v has no line like {pattern}:\n{info}')


main(run)
