#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Programs between two hosts: two daemons in network namespaces joined by a veth cable."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
import network  # noqa: E402
import report  # noqa: E402
from host import Host, Pair  # noqa: E402

NAMES = [f'urxe{os.getpid()}{side}' for side in 'ab']
PROGRAMS = [
    ['verbs_check'],
    ['ibv_rc_pingpong', '-c', '-n', '200'],
    ['ib_write_bw', '-F', '-n', '1000'],
    ['ib_send_bw', '-F', '-n', '1000'],
    ['ib_read_bw', '-F', '-n', '1000'],
]
PROGRAMS_IN_VLAN = [['ibv_rc_pingpong', '-c', '-n', '200'], ['ibv_ud_pingpong', '-n', '200']]


def in_vlan(number):
    """An address of a host in VLAN 100."""
    return ['--address', f'198.51.100.{number}/24@100']


def run():
    build = sys.argv[1]
    uplink = ['--uplink', 'af_packet:eth0']
    with Host(build, prefix=network.inside(NAMES[0]), arguments=uplink + in_vlan(1)) as server, \
            Host(build, prefix=network.inside(NAMES[1]), arguments=uplink + in_vlan(2)) as client:
        # A daemon may have started before its link had a link-local address, which then has the first GID.
        gids = server.gid('192.0.2.1'), client.gid('192.0.2.2')
        for argv in PROGRAMS:
            argv = [server.verbs_check if argv[0] == 'verbs_check' else argv[0], *argv[1:]]
            outputs = Pair(server, client, argv, gids[0], address='192.0.2.1',
                           client_gid=gids[1]).finish(60)
            print(*outputs, sep='\n')
            if argv[0].startswith('ib_'):
                report.check_perftest(outputs[1], None)
        for argv in PROGRAMS_IN_VLAN:
            Pair(server, client, argv, server.gid('198.51.100.1'), address='192.0.2.1',
                 client_gid=client.gid('198.51.100.2')).finish(60)


network.run(run, NAMES, mtu=9000)
