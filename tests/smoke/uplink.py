#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Two daemons in two network namespaces, joined by a veth cable, are two hosts."""
import os
import subprocess
import sys

import report
from host import Host, Pair, main, skip

NAMES = [f'urxe{os.getpid()}{side}' for side in 'ab']
PROGRAMS = [
    ['verbs_check'],
    ['ibv_rc_pingpong', '-c', '-n', '200'],
    ['ib_write_bw', '-F', '-n', '1000'],
    ['ib_send_bw', '-F', '-n', '1000'],
    ['ib_read_bw', '-F', '-n', '1000'],
]
PROGRAMS_IN_VLAN = [['ibv_rc_pingpong', '-c', '-n', '200'], ['ibv_ud_pingpong', '-n', '200']]


def ip(*arguments):
    return subprocess.run(['ip', *arguments], capture_output=True, text=True, check=False)


def make_hosts():
    """Two namespaces with a link named eth0 each, 192.0.2.1 and .2; False where that is refused."""
    a, b = NAMES
    steps = [['netns', 'add', a], ['netns', 'add', b],
             ['link', 'add', 'eth0', 'netns', a, 'mtu', '9000', 'type', 'veth',
              'peer', 'name', 'eth0', 'netns', b, 'mtu', '9000']]
    for number, name in enumerate(NAMES, 1):
        steps += [['-n', name, 'addr', 'add', f'192.0.2.{number}/24', 'dev', 'eth0'],
                  ['-n', name, 'link', 'set', 'lo', 'up'],
                  ['-n', name, 'link', 'set', 'eth0', 'up']]
    for step in steps:
        result = ip(*step)
        if result.returncode:
            skip(f'ip {" ".join(step)}: {result.stderr.strip()}')


def in_vlan(number):
    """An address of a host in VLAN 100."""
    return ['--address', f'198.51.100.{number}/24@100']


def gid_of(host, address):
    """The index of an IPv4 address as RoCEv2."""
    for line in host.run('ibv_devinfo', '-v').splitlines():
        if f'::ffff:{address}, RoCE v2' in line:
            return int(line.split('[')[1].split(']')[0])
    raise SystemExit(f'no GID for {address}')


def run():
    try:
        make_hosts()
        uplink = ['--uplink', 'af_packet:eth0']
        prefixes = [['ip', 'netns', 'exec', name] for name in NAMES]
        with Host(sys.argv[1], prefix=prefixes[0], arguments=uplink + in_vlan(1)) as server, \
                Host(sys.argv[1], prefix=prefixes[1], arguments=uplink + in_vlan(2)) as client:
            # One may have started before its link had a link-local address, which comes first.
            gids = gid_of(server, '192.0.2.1'), gid_of(client, '192.0.2.2')
            for argv in PROGRAMS:
                argv = [server.verbs_check if argv[0] == 'verbs_check' else argv[0], *argv[1:]]
                outputs = Pair(server, client, argv, gids[0], address='192.0.2.1',
                               client_gid=gids[1]).finish(60)
                print(*outputs, sep='\n')
                if argv[0].startswith('ib_'):
                    report.check_perftest(outputs[1], None)
            for argv in PROGRAMS_IN_VLAN:
                Pair(server, client, argv, gid_of(server, '198.51.100.1'), address='192.0.2.1',
                     client_gid=gid_of(client, '198.51.100.2')).finish(60)
    finally:
        for name in NAMES:
            ip('netns', 'delete', name)


if os.getuid():
    skip('namespaces and packet sockets need root')
main(run)
