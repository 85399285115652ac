#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Copies between the memory of virtual machines and programs of one host and one user: `urxe show` says that requests go
so, a capture stops it, and the sudden end of either side harms neither the other nor a later one.
"""
import contextlib
import os
import signal
import sys

from ends import CHECKED, run_pair
from guest import Machine
from host import Failure, free_port, main, size_of, until, wait_listening
from rdma import PATIENT, on_guest, on_host
from verbs import Lab, add_host

# Without an end, so that the test sees the queue pairs at work.
ENDLESS = [[f'ib_{kind}_bw', '-F', '-s', '65536', '-D', '600', *PATIENT] for kind in ('write', 'read', 'send')]
CHECK_COPIED = CHECKED[0]
SECONDS = 60


class Stream:
    """perftest without an end; the client's side sends or reads."""

    def __init__(self, server, client, argv):
        self.server, self.client, self.argv = server, client, argv
        if isinstance(server, Machine):
            port, tcp = server.port, server.address if isinstance(client, Machine) else '127.0.0.1'
            self.serving = server.start(on_guest(server, argv, port, server.address))
            server.wait_listening(port)
        else:
            port, tcp = free_port(), Machine.HERE
            self.serving = server.start(*on_host(server, argv, port, server.address))
            wait_listening(self.serving, port)
        if isinstance(client, Machine):
            self.sending = client.start(f'{on_guest(client, argv, port, client.address)} {tcp}')
        else:
            self.sending = client.start(*on_host(client, argv, port, client.address), tcp)

    def kill(self, one):
        """Kills the client or the server by SIGKILL."""
        end, program = (self.client, self.sending) if one == 'client' else (self.server, self.serving)
        if isinstance(end, Machine):
            end.run(f'killall -9 {self.argv[0]}')
        else:
            program.kill(signal.SIGKILL)

    def stop(self):
        for one in ('client', 'server'):
            with contextlib.suppress(Failure):
                self.kill(one)


def requesters(host):
    """The connected queue pairs whose requests are copied now."""
    return [qp for qp in host.show('qp')['qps'] if qp['type'] == 'RC' and qp['memory']]


def copied(host):
    """Bytes of WRITEs and READs, and of SENDs that the receiver copies."""
    return sum(qp['counters'].get(name, 0) for qp in requesters(host) for name in ('direct_bytes', 'reference_bytes'))


def pulled(host):
    return sum(qp['counters'].get('pulled_bytes', 0) for qp in host.show('qp')['qps'])


def expect_copies(host, stream):
    def more():
        before = copied(host)
        until(SECONDS, lambda: copied(host) > before, lambda: 'no bytes are copied')
        return True
    until(SECONDS, lambda: len(requesters(host)) == 1,
          lambda: f'{len(requesters(host))} queue pairs copy, not 1: {stream.argv}; {host.show("transport")}')
    more()
    sends = stream.argv[0] == 'ib_send_bw'
    if sends != bool(pulled(host)):
        raise Failure(f'a receiver has copied {pulled(host)} bytes: {stream.argv}')


def check_stream(host, server, client, argv):
    """Copies; then packets while a capture runs, and copies again."""
    stream = Stream(server, client, argv)
    try:
        expect_copies(host, stream)
        row, = [row for row in host.show('transport')['transports'] if row['memory']]
        if (row['path'], row['why']) != ('direct', 'same host and user'):
            raise Failure(f'an unexpected path: {row}')
        file = os.path.join(host.top, 'capture.pcapng')
        capture = host.spawn([host.urxe, 'capture', '--run-dir', host.run_dir, '-w', file])
        until(SECONDS, lambda: not requesters(host), lambda: 'still copies during a capture')
        until(SECONDS, lambda: size_of(file) > 1 << 20,
              lambda: 'the capture shows no packets')
        capture.kill(signal.SIGINT)
        capture.wait(SECONDS)
        expect_copies(host, stream)
    finally:
        stream.stop()


def check_paths(build, stack):
    lab = Lab(build, stack)
    host = add_host(build, stack)
    one, two = lab.boot(host), lab.boot(host)
    for server, client in ((one, host), (host, one), (one, two)):
        for argv in ENDLESS:
            check_stream(host, server, client, argv)
    return lab


def expect_intact(host, *ends):
    """No queue pair of the stream is left, and the next connection compares every byte."""
    until(SECONDS, lambda: not requesters(host), lambda: f'queue pairs are left: {requesters(host)}')
    run_pair(*ends, CHECK_COPIED)
    run_pair(*reversed(ends), CHECK_COPIED)


def check_kills(build, stack):
    """kill -9 of a program in mid transfer, at either end; then of the device process of a machine."""
    lab = Lab(build, stack)
    host = add_host(build, stack)
    one, two = lab.boot(host), lab.boot(host)
    for server, client in ((one, host), (host, one), (one, two)):
        for argv in ENDLESS:
            for victim in ('client', 'server'):
                stream = Stream(server, client, argv)
                expect_copies(host, stream)
                stream.kill(victim)
                stream.stop()
        expect_intact(host, server, client)
    stream = Stream(two, host, ENDLESS[0])
    expect_copies(host, stream)
    two.device.kill()
    stream.sending.wait(SECONDS)
    if stream.sending.running():
        raise Failure('the program does not notice the end of the machine')
    expect_intact(host, one, host)
    lab.machines.remove(two)
    return lab


PARTS = {'paths': check_paths, 'kills': check_kills}


def run():
    build, part = sys.argv[1:]
    with contextlib.ExitStack() as stack:
        for vm in PARTS[part](build, stack).machines:
            vm.expect_healthy()


if __name__ == '__main__':
    main(run)
