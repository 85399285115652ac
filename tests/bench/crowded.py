# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Measures of hosts with many connections: their set-up, and an incast over a slow link."""
import os

from measure import SECONDS, Unavailable
from ethernet import IPV4  # noqa: E402  by the path that measure has set
import incast
from host import Program, succeed, until  # noqa: E402


def of_hosts(bench, program):
    """The path of a program of tests/hosts."""
    path = os.path.join(bench.build, 'tests/hosts', program)
    if not os.path.exists(path):
        raise Unavailable(f'{program} is not built: a library or compiler that it needs is not installed')
    return path


class ConnectMany:
    """Seconds until all connections of all processes are established and have carried a message and its answer."""

    def __init__(self, transport, uplink, processes, connections):
        self.transport = transport
        self.uplink = uplink
        self.processes = processes
        self.each = str(connections // processes)

    def start(self, bench, end, *arguments):
        argv = ['taskset', '-c', str(bench.cpus[end]), of_hosts(bench, 'connect_many'), self.transport, *arguments]
        if self.transport == 'rdma':
            return bench.ends(self.uplink)[0][end].start(*argv)
        return Program([*bench.prefixes(self.uplink)[0][end], *argv], os.environ)

    def measure(self, bench):
        servers = [self.start(bench, 0, 'listen', IPV4.format(1), self.each) for _ in range(self.processes)]
        for server in servers:
            until(SECONDS, lambda s=server: s.output() or not s.running(), server.describe)
        clients = [self.start(bench, 1, 'connect', IPV4.format(1), self.each, server.output().strip())
                   for server in servers]
        for program in clients + servers:
            succeed(program, SECONDS)
        return max(float(client.output().split()[1]) for client in clients)


class Incasts:
    """Figures of one incast with each congestion control, which several rows share."""

    RUN_SECONDS = 6

    def __init__(self, arguments=()):
        self.arguments = arguments
        self.figures = {}

    def take(self, bench, congestion, name):
        """A figure that no earlier call has used."""
        if (congestion, name) not in self.figures:
            if os.getuid():
                raise Unavailable('only root has network namespaces')
            of_hosts(bench, 'incast')
            try:
                with incast.Star(bench.build, self.arguments) as net:
                    found = incast.incast(net, congestion, self.RUN_SECONDS)
            except SystemExit as skipped:  # without namespaces or marks
                raise Unavailable('no network with a slow link') from skipped
            self.figures |= {(congestion, each): value for each, value in found.items()}
        return self.figures.pop((congestion, name))


class Incast:
    """A figure of an incast."""

    def __init__(self, incasts, congestion, name):
        self.incasts = incasts
        self.congestion = congestion
        self.name = name

    def measure(self, bench):
        return self.incasts.take(bench, self.congestion, self.name)
