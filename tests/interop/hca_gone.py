#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Queue pairs of Linux' rdma_rxe, which is the HCA of urxed in a virtual machine, stay there while the machine's NIC has no
carrier. They go on in urxe's engine when urxed stops using the HCA (`urxe run --hca-gone engine`), and when the kernel
removes it. The peer is rdma_rxe in another machine, which is not told.
"""
import argparse
import os
import re

from inside import addresses, machines
from over_hca import OverHca
from host import Failure, main, until
from image import Image
from qmp import Qmp
from stations import InMachine

FLOW = 'tests/migrate/verbs_flow'
LOG = '/tmp/flow.log'
SECONDS = 120
FRAMES = 100  # in urxed within two seconds: more by the engine, less by the HCA


class Continuing(OverHca):
    """A machine whose programs outlive their HCA, and daemons."""

    def restart(self, hca):
        """Ends urxed, and starts one with that option --hca."""
        self.guest.run('kill $(cat /run/urxe/*/urxed.pid); while pidof urxed >/dev/null; do usleep 20000; done')
        self.guest.run(f'/urxe/tools/urxed --uplink af_packet:{self.nic} --hca {hca}')

    def attached(self):
        """How often the program has found another daemon."""
        return self.log().count('attached again')

    def path(self):
        return [qp['path'] for qp in self.show('qp')['qps'] if qp['state'] == 'RTS']

    def wait(self, condition, what):
        until(60, condition, lambda: f'{what}: {self.show("qp")}\n{self.log()}')

    def log(self):
        return self.guest.run(f'cat {LOG}; true')


def start_flow(machine, peer, port, gone='engine', timeout=18):
    """Messages in both directions by the HCA, of which every byte is compared."""
    words = f'verbs_flow -p {port} -t {timeout}'
    server = peer.guest.start(f'{words} -d {peer.device} -g {peer.gids[4]}')
    peer.guest.wait_listening(port)
    # A restart takes longer in a machine whose processors are emulated than programs wait by default.
    client = machine.guest.start(f'URXE_RECONNECT_S=60 URXE_LOG=info /urxe/tools/urxe run --hca-gone {gone} -- {words} '
                                 f'-d urxe0 -g {machine.here().gids[4]} {peer.addresses[4]} 2>{LOG}')
    machine.wait(lambda: machine.path() == ['hca'], 'not by the HCA')
    return client, server


def end_flow(machine, client, server):
    machine.guest.run('killall -TERM verbs_flow')
    counts = [count_messages(program, machine) for program in (client, server)]
    if counts[0] != counts[1]:
        raise Failure(f'not the same messages: {counts}')
    print(f'{counts[0]} messages')


def check_new(machine, port, by_hca):
    """A new connection within the machine."""
    words = f'URXE_LOG=info /urxe/tools/urxe run --way hca -- ibv_rc_pingpong -d urxe0 -g 1 -n 10 -p {port}'
    server = machine.guest.start(words)
    machine.guest.wait_listening(port)
    said = machine.guest.run(f'{words} 127.0.0.1 2>&1')
    if server.wait(SECONDS) or by_hca != ('hca_requests' in said):
        raise Failure(f'not by_hca={by_hca}: {said}\n{server.describe()}')


def check_carrier(machine, peer, port):
    """By the HCA, whose retries last a minute, also after a time without carrier. New connections are the engine's meanwhile."""
    client, server = start_flow(machine, peer, port, 'error', 21)
    monitor = Qmp(machine.guest.monitor)
    for up, state in (False, 'down'), (True, 'active'):
        monitor.ask('set_link', name='n0', up=up)
        until(10, lambda s=state: machine.show('device')['hca'][0]['state'] == s, lambda s=state: f'not {s}')
        check_new(machine, port + 1, by_hca=up)
        if machine.path() != ['hca']:
            raise Failure(f'{state}: not by the HCA: {client.describe()}\n{machine.log()}')
    monitor.close()
    before = machine.sent_by_hca()
    machine.wait(lambda: machine.sent_by_hca() > before + FRAMES or not client.running(), 'no packets of the HCA')
    end_flow(machine, client, server)


def check_removed(machine, peer, port):
    """The kernel waits until programs have closed a device of rdma_rxe; urxed and its programs do so when it is removed."""
    client, server = start_flow(machine, peer, port)
    removal = machine.guest.start('rdma link delete rxe0')
    if removal.wait(60):
        raise Failure(f'not removed: {removal.describe()}\n{machine.show("device")}\n{machine.log()}')
    machine.wait(lambda: machine.path() == ['direct-uplink'] or not client.running(), 'not by the engine')
    if not client.running():
        raise Failure(f'ended: {client.describe()}\n{machine.log()}')
    # The peer sends packets to the engine, to a QPN of the HCA.
    before = machine.seen_by_switch()
    machine.wait(lambda: machine.seen_by_switch() - before >= FRAMES, 'no frames of the peer')
    end_flow(machine, client, server)


def check_flow(machine, peer, port):
    """By the HCA, then by the HCA with another daemon, then by the engine, as the next daemon does not use the HCA."""
    client, server = start_flow(machine, peer, port)
    for number, (hca, by_hca) in enumerate((('auto', True), ('none', False), ('auto', False)), 1):
        machine.restart(hca)
        machine.wait(lambda: machine.attached() == number or not client.running(), 'not attached')  # pylint: disable=cell-var-from-loop
        machine.wait(lambda: (machine.path() == ['hca']) == by_hca, f'by the wrong path with --hca {hca}')  # pylint: disable=cell-var-from-loop
        # A new daemon has received packets before it knew of the HCA.
        before = machine.seen_by_switch()
        machine.guest.run('sleep 2')
        if not client.running() or not machine.path():
            raise Failure(f'ended with --hca {hca}: {client.describe()}\n{machine.log()}')
        seen = machine.seen_by_switch() - before
        print(f'{seen} frames in urxed with --hca {hca}, {before} before')
        if (seen < FRAMES) != by_hca:
            raise Failure(f'urxed has received {seen} frames with --hca {hca}')
    end_flow(machine, client, server)


def count_messages(program, machine):
    if program.wait(SECONDS) or not (found := re.search(r'^(\d+) messages each way, all bytes right', program.output(),
                                                       re.MULTILINE)):
        raise Failure(f'{program.describe()}\n{machine.log()}')
    return int(found[1])


def run():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', required=True)
    options = parser.parse_args()
    image = Image(options.build, [os.path.join(options.build, FLOW)], urxe=True)
    with machines(image, 'virtio') as (one, two):
        two.run(f'rdma link add rxe0 type rxe netdev {two.interface(two.mac)}')
        machine, peer = Continuing(one, 2), InMachine(two, addresses(1))
        check_carrier(machine, peer, 18602)
        check_flow(machine, peer, 18600)
        check_removed(machine, peer, 18601)


if __name__ == '__main__':
    main(run)
