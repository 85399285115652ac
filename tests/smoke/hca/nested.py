#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
One urxe is the HCA of another: programs under two nested `urxe run`. Forced, the HCA executes all queue pairs. Otherwise
it executes those with a native peer; two programs of the inner device exchange messages by the engine, under the HCA's
numbers and keys.
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
import report  # noqa: E402
from host import Failure, Host, Pair, free_port, main, succeed, until, wait_listening  # noqa: E402
from nested import OUTER, Nested, set_port, without_hca  # noqa: E402

SECONDS = 180
CONNECTED = [
    ['ibv_rc_pingpong', '-c', '-e'],
    ['ibv_uc_pingpong', '-c'],
    ['ib_write_bw', '-F', '-n', '200'],
    ['ib_send_lat', '-F', '-s', '2', '-n', '200'],
    ['ib_write_lat', '-F', '-s', '2', '-n', '200'],
    ['ib_read_lat', '-F', '-n', '200'],
    ['ib_atomic_lat', '-F', '-n', '200'],
    ['verbs_check', '-W'],
    ['verbs_check', '-W', '-e'],
    ['verbs_check', '-W', '-c', 'UC'],
]
# These go where the device goes, also with a peer on this host.
BY_DEVICE = [
    ['ibv_ud_pingpong'],
    ['ibv_srq_pingpong', '-c'],
    ['verbs_check', '-W', '-c', 'UD'],
    ['verbs_check', '-W', '-S'],
]


def counter(program, name):
    """A counter that the inner library has logged at the end; it leaves out zeros."""
    found = re.findall(rf'{name}: (\d+)', program.errors())
    return int(found[-1]) if found else 0


def check(nested, argv, by_hca):
    argv = [nested.verbs_check if word == 'verbs_check' else word for word in argv]
    pair = Pair(nested, nested, argv)
    outputs = pair.finish(SECONDS)
    report.check(argv, *outputs)
    requests = counter(pair.client, 'hca_requests')
    frames = counter(pair.client, 'tx_packets')
    print(f'{" ".join(argv)} ({nested.way}): {requests} requests by the HCA, {frames} frames by the engine')
    if by_hca != bool(requests) or by_hca != (not frames):
        raise Failure(f'{argv}, {nested.way}: the wrong way\n{pair.client.describe()}')


def check_references(nested):
    """The receiver copies long SENDs from the sender's memory, also between QPNs of the HCA."""
    pair = Pair(nested, nested, ['ib_send_bw', '-F', '-s', '65536', '-n', '200'])
    pair.finish(SECONDS)
    pulled, unreached = (counter(pair.server, f'direct_{name}') for name in ('pulled', 'unreached'))
    print(f'SENDs of 64 KiB: {pulled} copied, {unreached} of unknown processes')
    if not pulled or unreached:
        raise Failure(f'SENDs of 64 KiB are not copied\n{pair.server.describe()}\n{pair.client.describe()}')


def check_native(outer, nested, argv):
    """The server uses the HCA without urxe in front of it; the daemon of the client does not know it."""
    argv = [nested.verbs_check if word == 'verbs_check' else word for word in argv]
    port = free_port()
    argv += ['-p', str(port), '-x' if argv[0].startswith('ib_') else '-g', '1', '-d']
    server = outer.start(*argv, 'hca0')
    wait_listening(server, port)
    client = nested.start(*argv, 'urxe0', '127.0.0.1')
    succeed(client, SECONDS)
    succeed(server, SECONDS)
    print(f'{" ".join(argv)}: {counter(client, "hca_requests")} requests to a native peer')
    if not counter(client, 'hca_requests'):
        raise Failure(f'{argv}: not by the HCA\n{client.describe()}')


def qps_by_hca(nested):
    return sum(qp.get('path') == 'hca' for qp in nested.show('qp').get('qps', []))


def endless(nested):
    """A pair that exchanges messages by the HCA without end, and prints a row each second."""
    pair = Pair(nested, nested, ['stdbuf', '-oL', 'ib_send_bw', '-F', '--run_infinitely', '-D', '1'])
    await_rows(pair)
    return pair


def await_rows(pair):
    """Messages go on."""
    before = len(report.rows(pair.client.output()))
    until(30, lambda: len(report.rows(pair.client.output())) > before + 1 or not pair.client.running(),
          lambda: f'no messages: {pair.client.describe()}')
    if not pair.client.running():
        raise Failure(f'ended: {pair.client.describe()}')


def check_port_down(outer, nested):
    """Connections by an HCA whose port is down stay there; later ones are the engine's, until the port is active."""
    watch = nested.start('stdbuf', '-oL', 'ibv_asyncwatch', '-d', 'urxe0')
    until(30, watch.output, lambda: f'does not begin: {watch.describe()}')
    pair = endless(nested)
    for state, by_hca, event in ('1: DOWN', False, 'PORT_ERR'), ('4: ACTIVE', True, 'PORT_ACTIVE'):
        set_port(outer, nested, state)
        until(10, lambda e=event: e in watch.output(), lambda e=event: f'no {e}: {watch.describe()}')
        check(nested, CONNECTED[0], by_hca=by_hca)
        await_rows(pair)
        if qps_by_hca(nested) != 2:
            raise Failure(f'{state}: not by the HCA: {nested.show("qp")}')
    for program in (watch, pair):
        program.kill()


def check_changes(outer, nested):
    """Connections by an HCA that goes fail; later ones are the engine's, until it comes back."""
    pair = endless(nested)
    with without_hca(outer, nested):
        until(30, lambda: not pair.client.running(), lambda: f'goes on: {pair.client.describe()}')
        if 'the HCA has gone' not in pair.client.errors():
            raise Failure(f'the HCA is still there: {pair.client.describe()}')
        pair.kill()
        check(nested, CONNECTED[2], by_hca=False)
    check(nested, CONNECTED[2], by_hca=True)


def check_older(outer, nested):
    """A queue pair that is older than the HCA is the engine's, also if the HCA is forced."""
    port = free_port()
    argv = ['ibv_rc_pingpong', '-n', '1000000', '-p', str(port), '-g', '1', '-d', 'urxe0']
    nested.way = 'hca'
    with without_hca(outer, nested):
        server = nested.start(*argv)
        wait_listening(server, port)
    until(10, lambda: 'executes queue pairs' in server.errors(), lambda: f'no HCA: {server.describe()}')
    nested.way = 'engine'
    client = nested.start(*argv, '127.0.0.1')
    until(30, lambda: [qp['way_reason'] for qp in nested.show('qp')['qps'] if qp['state'] == 'RTS' and qp['way_reason']],
          lambda: f'not connected: {nested.show("qp")}')
    reasons = [qp['way_reason'] for qp in nested.show('qp')['qps'] if qp['way_reason']]
    if reasons != ['no HCA']:
        raise Failure(f'the way of an older queue pair: {reasons}')
    for program in (client, server):
        program.kill()


def check_continues(outer, nested):
    """With --hca-gone engine connections by an HCA that goes continue in software, and stay there."""
    nested.way = 'hca'
    nested.gone = 'engine'
    nested.transport = 'packet'  # copied requests take no PSN, so the HCA would tell too few
    for argv in (['ib_send_bw'], ['ib_write_bw', '-b'], ['ib_read_bw'], ['ib_send_bw', '-c', 'UC'],
                 ['ib_send_bw', '-c', 'UD', '-s', '1024'], ['ib_send_bw', '--use-srq', '-q', '2'],
                 ['ib_send_bw', '-c', 'UD', '-s', '1024', '--use-srq', '-q', '2']):
        pair = Pair(nested, nested, ['stdbuf', '-oL', *argv, '-F', '-D', '3'])
        until(30, lambda: qps_by_hca(nested) == (4 if '-q' in argv else 2), lambda: f'does not begin: {pair.client.describe()}')
        set_port(outer, nested, '1: DOWN')
        until(10, lambda: not qps_by_hca(nested), lambda: f'still the HCA: {nested.show("qp")}')
        set_port(outer, nested, '4: ACTIVE')
        pair.finish(SECONDS)
        requests, frames = (counter(pair.client, name) for name in ('hca_requests', 'tx_packets'))
        print(f'{" ".join(argv)}: {requests} requests by the HCA, then {frames} frames by the engine')
        if 'the engine goes on' not in pair.client.errors() or not requests or not frames:
            raise Failure(f'{argv}: not by both ways\n{pair.client.describe()}')
    nested.gone, nested.transport = 'error', 'auto'


class Connected:
    """A pair that rdma_cm connects at the HCA's address, and that exchanges messages without end."""

    def __init__(self, nested):
        argv = ['stdbuf', '-oL', 'ib_send_bw', '-R', '-F', '--run_infinitely', '-D', '1', '-p', str(free_port())]
        nested.log = 'debug'
        self.server = nested.start(*argv)
        nested.log = 'info'
        until(30, lambda: 'rdma_cm LISTEN: ok' in self.server.errors() or not self.server.running(), self.server.describe)
        self.client = nested.start(*argv, '192.0.2.20')
        await_rows(self)

    def kill(self):
        self.server.kill()
        self.client.kill()


def check_connected(nested, by_hca):
    """The HCA's rdma_cm makes the connection, but the program sees urxe0."""
    pair = Connected(nested)
    connected = sum(qp['state'] == 'RTS' for qp in nested.show('qp')['qps'])
    print(f'ib_send_bw -R ({nested.way}): {connected} queue pairs of urxe0, {qps_by_hca(nested)} by the HCA')
    if not connected or qps_by_hca(nested) != connected * by_hca:
        raise Failure(f'not on urxe0, or the wrong way: {nested.show("qp")}\n{pair.client.describe()}')
    pair.kill()


def check_connected_continues(outer, nested):
    """The engine takes over queue pairs that the HCA's rdma_cm has connected."""
    nested.way, nested.gone, nested.transport = 'hca', 'engine', 'packet'
    pair = Connected(nested)
    set_port(outer, nested, '1: DOWN')
    until(10, lambda: not qps_by_hca(nested), lambda: f'still the HCA: {nested.show("qp")}')
    await_rows(pair)
    set_port(outer, nested, '4: ACTIVE')
    pair.kill()
    nested.gone, nested.transport = 'error', 'auto'


def run():
    build = sys.argv[1]
    with Host(build, arguments=OUTER) as outer:
        with Nested(build, outer) as nested:
            devices = nested.run('ibv_devices')
            for name in ('urxe0', 'hca0'):
                if name not in devices:
                    raise Failure(f'the program does not see {name}:\n{devices}')
            nested.way = 'hca'
            # With the engine threads of both devices.
            nested.run(os.path.join(build, 'tests/smoke/verbs_process'), 'last_thread', seconds=SECONDS)
            for argv in CONNECTED + BY_DEVICE:
                check(nested, argv, by_hca=True)
            check_port_down(outer, nested)
            check_changes(outer, nested)
            check_older(outer, nested)
            check_continues(outer, nested)
            check_connected(nested, by_hca=True)
            check_connected_continues(outer, nested)
            nested.way = 'auto'
            check_connected(nested, by_hca=False)
            for argv in BY_DEVICE[:2]:
                check(nested, argv, by_hca=True)
            for argv in CONNECTED[::3]:
                check(nested, argv, by_hca=False)
            check_references(nested)
            for argv in CONNECTED[:1] + CONNECTED[6:8] + BY_DEVICE:
                check_native(outer, nested, argv)
            nested.way = 'engine'
            for argv in CONNECTED[:1] + BY_DEVICE:
                check(nested, argv, by_hca=False)
            check_connected(nested, by_hca=False)


if __name__ == '__main__':
    main(run)
