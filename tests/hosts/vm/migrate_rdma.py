#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
QEMU's own `migrate rdma:` over urxe0, on one host and between two. The guest writes to its memory meanwhile. QEMU
registers all memory before it transfers any (--pin-all), or each MiB when it needs it.
"""
import argparse
import os
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../../harness'), os.path.join(HERE, '../../clients'), os.path.join(HERE, '../paths')]
from ethernet import way_arguments  # noqa: E402
from host import Failure, free_port, main, skip, until  # noqa: E402
from hypervisor import Machine, installed  # noqa: E402
from place import OneHost, TwoHosts  # noqa: E402

PLACES = {
    'one': OneHost,
    'two': TwoHosts,
    'two_by_switch': lambda build: TwoHosts(build, way_arguments('switch')),
}

MIB = 64
SECONDS = 60


class Ends:
    """The hosts of both machines, and the way of the migration."""

    def __init__(self, at, build, pin_all):
        self.at = at
        self.build = build
        self.pin_all = pin_all

    def uri(self):
        return f'rdma:{self.at.address}:{free_port()}'

    def open_source(self):
        source = Machine(self.at.client, self.build, MIB)
        source.wait_filled()
        return source

    def destination(self, uri, running=False):
        return Machine(self.at.server, self.build, MIB, uri, running)

    def start(self, source, uri):
        """
        Starts a migration that never ends by itself, and waits until it is half-way: in 1 ms it could transfer 0.1 MiB,
        and the guest writes to 8 MiB all the time.
        """
        source.set_limits(self.pin_all, bandwidth=100 << 20, downtime_ms=1)
        source.migrate(uri)
        report = source.wait_half_way()
        check_progress(report)
        source.check_alive('while its memory is on the way')

    def move(self, source):
        """Migrates; the destination must have the same memory, and its guest must go on."""
        uri = self.uri()
        source.set_limits(self.pin_all)
        with self.destination(uri) as destination:
            source.migrate(uri)
            report = source.wait_migration('completed', 'failed')
            if report['status'] != 'completed':
                raise Failure(f'{report}\n{source.program.describe()}\n{destination.program.describe()}')
            check_progress(report)
            until(SECONDS, lambda: destination.state() != 'inmigrate', lambda: f'state {destination.state()}')
            if source.memory() != destination.memory():
                raise Failure('the destination has other memory than the source')
            self.check_clean()
            destination.qmp.ask('cont')
            destination.check_alive('after the migration')

    def hosts(self):
        return {id(host): host for host in (self.at.client, self.at.server)}.values()

    def check_clean(self):
        """Waits until no program has a queue pair, a region or a connection, on either host."""
        def left():
            return [row for host in self.hosts() for topic, of in (('qp', 'qps'), ('mr', 'mrs'), ('id', 'ids'))
                    for row in host.show(topic)[of]]

        until(SECONDS, lambda: not left(), lambda: f'left: {left()}')

    def check_no_leases(self):
        """Waits until no host has a lease of queue pair numbers."""
        def left():
            return [row for host in self.hosts() for row in host.show('lease')['leases']]

        until(SECONDS, lambda: not left(), lambda: f'left: {left()}')


def check_progress(report):
    """Checks the figures that `info migrate` prints."""
    ram = report['ram']
    if ram['total'] < MIB << 20 or ram['transferred'] < (MIB - 1) << 20 or ram['normal'] < (MIB - 1) << 8:
        raise Failure(f'a report without the memory: {report}')


def check_said(machine, *texts):
    """Waits until QEMU has printed one of these texts."""
    until(SECONDS, lambda: any(text in machine.program.errors() for text in texts),
          lambda: f'none of {texts}: {machine.program.describe()}')


def check_completed(ends):
    with ends.open_source() as source:
        ends.move(source)


def check_cancelled(ends):
    """The destination ends with an error, the guest goes on, and the next migration succeeds."""
    uri = ends.uri()
    with ends.open_source() as source:
        with ends.destination(uri) as destination:
            ends.start(source, uri)
            source.qmp.ask('migrate_cancel')
            source.wait_migration('cancelled')
            if destination.program.wait(SECONDS) == 0:
                raise Failure(f'the destination ends without an error: {destination.program.describe()}')
        ends.check_clean()
        source.check_alive('after the cancellation')
        ends.move(source)


def check_destination_killed(ends):
    """The migration fails, the guest goes on, and the next migration succeeds."""
    uri = ends.uri()
    with ends.open_source() as source:
        with ends.destination(uri) as destination:
            ends.start(source, uri)
            destination.program.kill()
            source.wait_migration('failed')
            check_said(source, 'cm event is 10')  # RDMA_CM_EVENT_DISCONNECTED
        ends.check_clean()
        source.check_alive('after the failure')
        ends.move(source)


def check_source_killed(ends):
    """The destination ends with an error."""
    uri = ends.uri()
    with ends.open_source() as source, ends.destination(uri) as destination:
        ends.start(source, uri)
        source.program.kill(signal.SIGKILL)
        if destination.program.wait(SECONDS) == 0:
            raise Failure(f'the destination ends without an error: {destination.program.describe()}')
        check_said(destination, 'cm event is 10')


def check_refused(ends):
    """Without a destination the migration fails at once, and the next one succeeds."""
    with ends.open_source() as source:
        source.set_limits(ends.pin_all)
        try:
            source.migrate(ends.uri())
        except Failure as failure:
            if 'connecting to destination' not in str(failure):
                raise
        else:
            source.wait_migration('failed')
        source.check_alive('after the refusal')
        ends.check_clean()
        ends.move(source)


CASES = {'completed': check_completed, 'cancelled': check_cancelled, 'refused': check_refused,
         'destination_killed': check_destination_killed, 'source_killed': check_source_killed}


def run():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', required=True)
    parser.add_argument('--place', required=True, choices=PLACES)
    parser.add_argument('--case', required=True, choices=CASES)
    parser.add_argument('--pin-all', action='store_true')
    options = parser.parse_args()
    if not installed():
        skip('no QEMU: Debian has it in the package qemu-system-x86')
    with PLACES[options.place](options.build) as at:
        ends = Ends(at, options.build, options.pin_all)
        CASES[options.case](ends)
        ends.check_no_leases()


if __name__ == '__main__':
    main(run)
