#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
rdma_cm between urxe and Linux' rxe, with the server on either side: Debian's programs over IPv4 and IPv6,
perftest's operations, rejections, disconnects and multicast groups.
"""
import os

import lan
from cm import PROGRAMS, check_death, check_groups, check_rejection, serve_guest, serve_host
from host import main

# Server and client; {} is the server's address.
BY_IPV6 = [
    (['rping', '-s', '-a', '::', '-C', '10', '-V'], ['rping', '-c', '-a', '{}', '-C', '10', '-V']),
    (['ucmatose', '-b', '::0', '-c', '2', '-C', '20'],
     ['ucmatose', '-s', '{}', '-c', '2', '-C', '20']),
    (['udaddy', '-b', '::0', '-c', '2'], ['udaddy', '-s', '{}', '-c', '2']),
]
BY_ANY = {4: PROGRAMS + [(['rdma_server'], ['rdma_client', '-s', '{}'])], 6: BY_IPV6}

# Modes of refuse.c, and the wildcard addresses of its listeners.
REFUSE = 'tests/interop/refuse'
REFUSED = ['request', 'reply', 'datagram']
EVERYWHERE = {4: '0.0.0.0', 6: '::'}

# perftest's commands with rdma_cm, which does not support UC.
PERFTEST = [
    ['ib_send_bw'], ['ib_send_lat'], ['ib_write_lat'], ['ib_read_bw'], ['ib_read_lat'],
    ['ib_atomic_bw'], ['ib_atomic_lat'],
    ['ib_send_bw', '-c', 'UD', '-s', '512'], ['ib_send_lat', '-c', 'UD', '-s', '512'],
]


def perftest():
    for argv in PERFTEST:
        argv = [*argv, '-R', '-F', '-n', '50']
        yield argv, [*argv, '{}']


def both_ways(net, server, client, version):
    print(f'{" ".join(client)}, IPv{version}', flush=True)
    of_host, of_guest = lan.ADDRESSES[version]
    serve_guest(net.host, net.guest, server, client, of_host)
    serve_host(net.host, net.guest, server, client, of_guest)


def refuse(net, version):
    for what in REFUSED:
        argv = ['refuse', what]
        both_ways(net, [*argv, '-b', EVERYWHERE[version]], [*argv, '-s', '{}'], version)


def run_programs(net):
    for version, programs in BY_ANY.items():
        for server, client in programs:
            both_ways(net, server, client, version)
        refuse(net, version)
        check_rejection(net.host, net.guest, lan.ADDRESSES[version])
    check_death(net.host, net.guest)
    check_groups(net.host, net.guest)


def run_perftest(net):
    for server, client in perftest():
        both_ways(net, server, client, 4)


def run_faults(net):
    """Impairments affect messages of the connection manager, too."""
    for version, programs in {4: PROGRAMS[:3], 6: BY_IPV6[:2]}.items():
        for server, client in programs:
            both_ways(net, server, client, version)
        check_rejection(net.host, net.guest, lan.ADDRESSES[version])
    check_death(net.host, net.guest)
    # About 800 frames go in each direction. With 1 % of each kind of impairment, a kind is missing in one of 500
    # runs, and all kinds are missing in one of 10^10 runs.
    net.check_faults(any)


PARTS = {'programs': run_programs, 'perftest': run_perftest, 'faults': run_faults}


def run():
    options = lan.parser(__doc__, PARTS).parse_args()
    refuse_program = os.path.join(options.build, REFUSE)
    with lan.make(options, [refuse_program]) as net:
        net.host.add_path(os.path.dirname(refuse_program))
        PARTS[options.part](net)


if __name__ == '__main__':
    main(run)
