# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Measures of group hca: what urxed's search for an HCA costs, how much latency urxe adds to an HCA, and how long connections
need after the HCA's port has changed its state.
"""
import re
import statistics
import subprocess
import time

import report
from host import Failure, Host, Pair, until
from measure import SECONDS, Pinned, share
from nested import OUTER, Nested, set_port, wait_used


class StartOfProgram:
    """The median time of `urxe run -- ibv_devinfo` under a urxed with this --hca."""

    RUNS = 40

    def __init__(self, hca):
        self.hca = hca

    def measure(self, bench):
        times = []
        with Host(bench.build, arguments=('--hca', self.hca)) as host:
            for _ in range(self.RUNS):
                start = time.perf_counter()
                subprocess.run(host.command(['ibv_devinfo']), env=host.environment, check=True,
                               stdout=subprocess.DEVNULL, timeout=SECONDS)
                times.append(time.perf_counter() - start)
        return statistics.median(times)


class StartOfDaemon:
    """The median time until a urxed with this --hca answers."""

    RUNS = 10

    def __init__(self, hca):
        self.hca = hca

    def measure(self, bench):
        times = []
        for _ in range(self.RUNS):
            with Host(bench.build, daemon=False) as host:
                start = time.perf_counter()
                host.start_daemon(['--hca', self.hca])
                times.append(time.perf_counter() - start)
        return statistics.median(times)


class IdleDaemon:
    """The CPU share of a urxed with this --hca that has nothing to do."""

    RUN_SECONDS = 5

    def __init__(self, hca):
        self.hca = hca

    def measure(self, bench):
        with Host(bench.build, arguments=('--hca', self.hca)) as host:
            time.sleep(2)  # until the work of the start is done
            return share([host.daemon_pid()], self.RUN_SECONDS)


class LatencyWithoutHca:
    """Latency of a perftest program under a urxed with this --hca."""

    def __init__(self, argv, hca):
        self.argv = argv.split()
        self.hca = hca

    def measure(self, bench):
        with Host(bench.build, arguments=('--hca', self.hca)) as host:
            return latency(bench, host, self.argv, 'urxe0')


def latency(bench, host, argv, device):
    ends = [Pinned(host, cpu, 'packet') for cpu in bench.cpus]
    argv = [argv[0], '-F', *argv[1:]]
    return report.measured(lambda: Pair(*ends, argv, device=device).finish(SECONDS)[1], report.latency)


class LatencyOverUrxe:
    """
    Latency of a perftest program in packets. The HCA is the device of another urxe: `nested`, the program uses urxe0 over that
    HCA; else it uses the HCA itself.
    """

    def __init__(self, argv, nested):
        self.argv = argv.split()
        self.nested = nested

    def measure(self, bench):
        with Host(bench.build, arguments=OUTER) as outer:
            if not self.nested:
                return latency(bench, outer, self.argv, 'hca0')
            with Nested(bench.build, outer) as host:
                host.way, host.transport, host.log = 'hca', 'packet', 'error'
                return latency(bench, host, self.argv, 'urxe0')


class PortChange:
    """
    The time from a change of the HCA's port until a new connection has exchanged ten messages. The port goes down, and the
    engine executes the connection; or it comes `up` again, and the HCA does. The time includes urxed's scan of sysfs and the
    start of both programs.
    """

    def __init__(self, up):
        self.up = up

    def measure(self, bench):
        with Host(bench.build, arguments=OUTER) as outer, Nested(bench.build, outer) as host:
            host.way = 'hca'
            wait_used(host, True)
            if self.up:
                set_port(outer, host, '1: DOWN')
            start = time.perf_counter()
            set_port(outer, host, '4: ACTIVE' if self.up else '1: DOWN')
            pair = Pair(host, host, ['ibv_rc_pingpong', '-n', '10'])
            pair.finish(SECONDS)
            taken = time.perf_counter() - start
            if bool(re.search(r'hca_requests: [1-9]', pair.client.errors())) != self.up:
                raise Failure(f'executed by the wrong side: {pair.client.describe()}')
        return taken
