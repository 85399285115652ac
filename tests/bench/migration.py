# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Measures of QEMU's own migration of a paused guest with 1 GiB, by RDMA and by TCP."""
import time

from measure import Unavailable
from host import Failure, free_port, until  # noqa: E402  by the path that measure has set
from hypervisor import Machine, installed  # noqa: E402

MIB = 1024
PAGE = 4096


class Migrations:
    """
    Migrations between two machines on one host, or on two hosts of an uplink. The source stays; each migration has a new
    destination, whose memory is populated: the kernel clears 1 GiB more slowly than any transport fills it. A migration
    gives one figure of each kind.
    """

    def __init__(self, uplink=None):
        self.uplink = uplink
        self.source = None
        self.figures = {}

    def end(self, bench, side, *arguments):
        hosts, _, _ = bench.ends(self.uplink)
        return Machine(hosts[1 - side], bench.build, MIB, *arguments, populated=True, cpu=bench.cpus[side])

    def open(self, bench):
        """Starts the source, whose guest fills its memory and then stands still."""
        if not installed():
            raise Unavailable('QEMU is not installed')
        if not self.source:
            self.source = bench.stack.enter_context(self.end(bench, 0))
            self.source.wait_filled()
            self.source.qmp.ask('stop')

    def migrate(self, bench, kind, pin_all):
        self.open(bench)
        uri = f'{kind}:{bench.ends(self.uplink)[2]}:{free_port()}'
        self.source.set_limits(pin_all)
        with self.end(bench, 1, uri, False) as destination:
            used = [used_by(pid) for pid in self.processes(bench, destination)]
            self.source.migrate(uri)
            report = self.source.wait_migration('completed', 'failed')
            if report['status'] != 'completed':
                raise Failure(f'{report}\n{self.source.program.describe()}\n{destination.program.describe()}')
            until(20, lambda: destination.state() != 'inmigrate', lambda: 'the destination does not end the migration')
            used = [used_by(pid) - before for pid, before in zip(self.processes(bench, destination), used)]
        # A machine that has migrated must have run before it can migrate again.
        self.source.qmp.ask('cont')
        self.source.qmp.ask('stop')
        return {'pages': report['ram']['total'] / PAGE / (report['total-time'] / 1e3), 'seconds': sum(used)}

    def processes(self, bench, destination):
        """Both QEMUs and all daemons."""
        daemons = {host.daemon_pid() for host in bench.ends(self.uplink)[0]}
        return [self.source.program.process.pid, destination.program.process.pid, *sorted(daemons)]

    def take(self, bench, kind, pin_all, key):
        """A figure that no earlier call has used."""
        figures = self.figures.setdefault((kind, pin_all), {})
        if key not in figures:
            figures.update(self.migrate(bench, kind, pin_all))
        return figures.pop(key)


class Migration:
    """Pages per second, or the processor time of both QEMUs and the daemons."""

    def __init__(self, migrations, kind, pin_all, key):
        self.migrations = migrations
        self.arguments = kind, pin_all, key

    def measure(self, bench):
        return self.migrations.take(bench, *self.arguments)


def used_by(pid):
    """CPU seconds of all threads of a process, of ended ones too (clock_getcpuclockid(3))."""
    return time.clock_gettime(~pid << 3 | 2)
