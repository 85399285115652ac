#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Thousands of connections by rdma_cm between two hosts (connect_many.c), of one or of many processes."""
import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../paths'))
from crowd import leases  # noqa: E402
from ethernet import Ethernet, IPV4  # noqa: E402
from host import main, succeed, until  # noqa: E402

MTU = 4200
SECONDS = 60


def start_server(program, host, *arguments):
    server = host.start(program, 'rdma', 'listen', IPV4.format(1), *arguments)
    until(SECONDS, lambda: server.output() or not server.running(), server.describe)
    return server


def check_management(host):
    """Neither QP1's ring nor its queues have lost a management datagram, which would be repeated after 4 s."""
    device = next(port['device'] for port in host.show('port')['ports'] if port['kind'] == 'uplink')
    lost = {name: host.counter('gsi', name) for name in ('gsi_no_room', 'gsi_flood')}
    lost['rx_qp1_missed'] = device['rx_qp1_missed']
    if any(lost.values()):
        raise AssertionError(f'lost management datagrams: {lost}')


def check(program, hosts, processes, connections):
    here, there = hosts
    servers = [start_server(program, here, str(connections)) for _ in range(processes)]
    clients = [there.start(program, 'rdma', 'connect', IPV4.format(1), str(connections), server.output().strip())
               for server in servers]
    for each in clients + servers:
        succeed(each, SECONDS)
    print(f'{processes} processes with {connections} connections each; the first: {clients[0].output().split()}')
    for host in hosts:
        until(SECONDS, lambda h=host: not leases(h), lambda: 'a lease is left')
        check_management(host)


def run():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', required=True)
    parser.add_argument('--way', choices=['direct', 'switch'], default='direct')
    parser.add_argument('--processes', type=int, default=1)
    parser.add_argument('--connections', type=int, default=4096, help='of all processes')
    options = parser.parse_args()
    program = os.path.join(options.build, 'tests/hosts/connect_many')
    arguments = [] if options.way == 'direct' else ['--direct-uplink', 'none']
    with Ethernet(options.build, [MTU] * 2, arguments) as net:
        check(program, net.hosts, options.processes, options.connections // options.processes)


if __name__ == '__main__':
    main(run)
