#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""rdma_cm between two hosts over IPv4, IPv6 and a VLAN."""
import shutil
import sys

from ethernet import Ethernet, IPV4, IPV4_IN_VLAN, IPV6, way_arguments
from host import main, skip, until
from rdmacm import check_group, check_pair

PROGRAMS = [
    (['rping', '-s', '-C', '10', '-V'], ['rping', '-c', '-a', '{}', '-C', '10', '-V']),
    (['ucmatose', '-c', '4'], ['ucmatose', '-s', '{}', '-c', '4']),
    (['ib_write_bw', '-R', '-F', '-n', '500'], ['ib_write_bw', '-R', '-F', '-n', '500', '{}']),
]


def run():
    build, way = sys.argv[1:]
    if not shutil.which('rping'):
        skip('rping is not installed')
    with Ethernet(build, [1500] * 2, way_arguments(way)) as net:
        a, b = net.hosts
        for host in net.hosts:
            until(20, lambda: 'PORT_ACTIVE' in host.run('ibv_devinfo'), lambda: 'no link')
        for server, client in PROGRAMS:
            check_pair(a, b, server, client, IPV4.format(1))
        for address in (IPV6, IPV4_IN_VLAN):
            check_pair(a, b, ['rping', '-s', '-a', address.format(1), '-C', '3'],
                       ['rping', '-c', '-a', '{}', '-C', '3'], address.format(1))
        check_pair(b, a, ['udaddy', '-c', '2'], ['udaddy', '-s', '{}', '-c', '2'],
                   IPV4.format(2))
        check_group(a, b)


if __name__ == '__main__':
    main(run)
