#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
urxe over an HCA: a machine whose kernel has rdma_rxe on the interface of urxed's uplink. Its queue pairs of urxe0 run
on the kernel's device, and urxe's engine sends nothing. The peers are Linux' rdma_rxe in another machine, alone and
below a urxe of its own, and a urxe without an HCA. Connections by address are made by the machine's rdma_cm.
"""
import argparse
import json
import os

from inside import CONNECTING, Machine, addresses, machines
from host import Failure, main
from image import Image
from rdma import PATH_MTU, VERBS_CHECK
from stations import InMachine, connect, exchange
import operations


def without_windows(argv):
    """An HCA below urxe0 has no memory windows."""
    return [*argv, '-W'] if argv[0] == 'verbs_check' else argv


CONTENTS = [operations.with_contents(without_windows(argv), PATH_MTU)
            for argv in operations.PINGPONGS + operations.VERBS_CHECK]
PROGRAMS = [*(operations.perftest(argv, PATH_MTU) for argv in operations.PERFTEST), *CONTENTS]
COUNT = 200
PINGS = [['rping', side, '-a', '{}', '-C', str(COUNT), '-V'] for side in ('-s', '-c')]
HW_COUNTERS = '/sys/class/infiniband/rxe0/ports/1/hw_counters'


class OverHca(Machine):
    """A machine with rdma_rxe and urxed on one interface."""

    def __init__(self, guest, number):  # pylint: disable=super-init-not-called
        self.guest = guest
        self.addresses = addresses(number)
        self.nic = guest.interface(guest.mac)
        guest.run(f'rdma link add rxe0 type rxe netdev {self.nic}')
        guest.run(f'/urxe/tools/urxed --uplink af_packet:{self.nic} --hca auto')
        self.check_device('rxe0')

    def show(self, what):
        return json.loads(self.guest.run(f'/urxe/tools/urxe show {what} --json'))

    def check_device(self, name):
        shown = json.dumps(self.show('device'))
        if f'"{name}"' not in shown:
            raise Failure(f'no {name} in urxe show device: {shown}')

    def seen_by_switch(self):
        return next(row['value'] for row in self.show('counter')['counters']
                    if (row['of'], row['name']) == ('switch', 'in_frames'))

    def sent_by_hca(self):
        return int(self.guest.run(f'cat {HW_COUNTERS}/sent_pkts'))


def run_all(one, other, programs):
    for server, client, version in ((one, other, 6), (other, one, 4)):
        for argv in programs:
            print(f'{" ".join(argv)}: {server.name} serves', flush=True)
            exchange(server, client, argv, version, PATH_MTU)
        for serving, asking in CONNECTING:
            print(f'{" ".join(asking)}: {server.name} serves', flush=True)
            connect(server, client, serving, asking, version)


def over_hca(machine, peer, programs):
    """The HCA's counters move. Its packets do not reach urxed, which would wake processes for each."""
    before, seen = machine.sent_by_hca(), machine.seen_by_switch()
    run_all(machine.here(), peer, programs)
    sent, seen = machine.sent_by_hca() - before, machine.seen_by_switch() - seen
    print(f'{sent} packets of the HCA, {seen} frames in urxed')
    if sent < 50 * len(programs):
        raise Failure(f'the HCA has sent {sent} packets only')
    if seen > sent // 20:
        raise Failure(f'urxed has received {seen} frames, while the HCA sent {sent}')


def check_ways(machine):
    """
    Two programs of the machine that rdma_cm connects are on urxe0, whose engine may exchange their messages: then the HCA
    sends those of the connection managers only.
    """
    for way, by_hca in ('auto', False), ('engine', False), ('hca', True):
        station = machine.here()
        station.prefix = f'/urxe/tools/urxe run --way {way} -- '
        before = machine.sent_by_hca()
        connect(station, station, *PINGS, 4)
        sent = machine.sent_by_hca() - before
        print(f'--way {way}: {sent} packets of the HCA')
        if (sent > COUNT) != by_hca:
            raise Failure(f'--way {way}: the HCA has sent {sent} packets')


def meet_rxe(guests, programs):
    one, two = guests
    two.run(f'rdma link add rxe0 type rxe netdev {two.interface(two.mac)}')
    machine = OverHca(one, 2)
    over_hca(machine, InMachine(two, addresses(1)), programs)
    check_ways(machine)


def meet_hca(guests, programs):
    one, two = (OverHca(guest, number) for guest, number in zip(guests, (2, 1)))
    over_hca(one, two.here(), programs)


def meet_engine(guests, programs):
    one, two = guests
    over_hca(OverHca(one, 2), Machine(two, 1).on_interface(), programs)


PEERS = {'rxe': meet_rxe, 'hca': meet_hca, 'engine': meet_engine}


def run():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', required=True)
    parser.add_argument('--peer', choices=PEERS, required=True)
    parser.add_argument('--brief', action='store_true', help='two programs only')
    options = parser.parse_args()
    image = Image(options.build, [os.path.join(options.build, VERBS_CHECK)], urxe=True)
    with machines(image, 'virtio') as guests:
        PEERS[options.peer](guests, CONTENTS[:1] + CONTENTS[-1:] if options.brief else PROGRAMS)


if __name__ == '__main__':
    main(run)
