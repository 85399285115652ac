#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""urxed answers on DPDK's telemetry socket, with the protocol of dpdk-telemetry.py."""
import glob
import json
import os
import signal
import socket
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from endless import EndlessPair  # noqa: E402
from host import Failure, Host, main, succeed  # noqa: E402


def connect(host):
    paths = glob.glob(os.path.join(host.run_dir, 'dpdk/*/dpdk_telemetry.v2'))
    if len(paths) != 1:
        raise Failure(f'not one telemetry socket: {paths}')
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client.connect(paths[0])  # blocking: with a time limit connect fails if other clients connect, too
    client.settimeout(20)
    size = json.loads(client.recv(1024))['max_output_len']
    return client, size


def ask(connection, command):
    client, size = connection
    client.send(command.encode())
    return json.loads(client.recv(size))[command.split(',')[0]]


def expect(what, found, wanted):
    if found != wanted:
        raise Failure(f'{what}: {found!r}, not {wanted!r}')


def check_numbers(host, connection, pair):
    """Ports, leases and counters equal those of `urxe show`."""
    pids = sorted([pair.server.process.pid, pair.client.process.pid])
    expect('clients', ask(connection, '/urxe/host')['clients'] >= 2, True)
    ports = [ask(connection, f'/urxe/port,{n}') for n in ask(connection, '/urxe/ports')]
    expect('kinds', [port['kind'] for port in ports], ['urxed', 'process', 'process'])
    expect('pids', sorted(port['pid'] for port in ports[1:]), pids)
    for port in ports[1:]:
        expect('a port', (port['state'], port['drop_no_qp'], 'device_tx_frames' in port,
                          port['name']), ('active', 0, True, f'ib_write_bw-{port["pid"]}'))
    numbers = ask(connection, '/urxe/ports')
    expect('ports by parts', [ask(connection, f'/urxe/ports,{n}') for n in (0, 1, 3, 1000)], [numbers, numbers[1:], [], []])
    leases = ask(connection, '/urxe/leases')
    expect('number of leases', len(leases), 2)
    expect('leases by parts', ask(connection, '/urxe/leases,1'), leases[1:])
    expect('leases', sorted(ask(connection, f'/urxe/lease,{qpn}')['pid'] for qpn in leases), pids)
    expect('hexadecimal', ask(connection, f'/urxe/lease,{leases[0]:#x}')['qpn_first'], leases[0])
    counters = ask(connection, '/urxe/counters')
    for name in ('switch_in_frames', 'drop_runt', 'vnic_interrupts'):
        expect(name, isinstance(counters.get(name), int), True)
    for mistake in ('/urxe/port', '/urxe/port,x', '/urxe/port,99999', '/urxe/lease,7', '/urxe/ports,x', '/urxe/leases,-1'):
        expect(mistake, ask(connection, mistake), None)
    expect('pid', ask(connection, '/urxe/host')['pid'], host.show('host')['host']['pid'])


def check_many(host):
    """Several clients send requests while frames flow and `urxe show` runs."""
    failures = []

    def ask_often():
        try:
            connection = connect(host)
            for _ in range(100):
                if not ask(connection, '/urxe/counters'):
                    raise Failure('no answer')
        except (Failure, OSError, ValueError) as failure:
            failures.append(failure)

    threads = [threading.Thread(target=ask_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise Failure(f'many at once: {failures[0]!r}')


def run():
    with Host(sys.argv[1]) as host:
        connection = connect(host)
        pair = EndlessPair(host, host, ['ib_write_bw', '-F'])
        # A process has its lease before its vNIC is active; messages move when both have both.
        pair.go_on()
        check_numbers(host, connection, pair)
        check_many(host)
        pair.kill()
        connection[0].close()
        # The next daemon removes a killed daemon's files, and its own files when it ends.
        host.daemon.kill()
        host.start_daemon()
        connect(host)[0].close()
        host.daemon.kill(signal.SIGTERM)
        succeed(host.daemon, 10)
        if os.path.exists(os.path.join(host.run_dir, 'dpdk')):
            raise Failure('DPDK\'s files are left')


main(run)
