# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Measures of two hosts with two uplinks each (--bond)."""
import os
import signal
import time

from measure import SECONDS, Unavailable, built
import report
from bond import Bonded, check_states, slow_down  # noqa: E402  by the path that measure has set
from ethernet import IPV4, way_arguments  # noqa: E402
from host import Pair, succeed, until  # noqa: E402


def open_bonded(bench, mode, separate, way='direct'):
    if os.getuid():
        raise Unavailable('only root has network namespaces')
    try:
        return Bonded(bench.build, mode, separate, arguments=way_arguments(way))
    except SystemExit as skipped:  # without namespaces
        raise Unavailable('no network with two cables') from skipped


class Failover:
    """The longest time without a completion on any of eight connections while the first cable of a host fails."""

    def __init__(self, failure):
        self.failure = failure  # a key of Bonded.failures

    def measure(self, bench):
        with open_bonded(bench, 'active-backup', False) as net:
            fail, _ = net.failures()[self.failure]
            server, client = net.ends(IPV4)
            pair = Pair(server[0], client[0], [built(bench, 'gap')], server[1], server[2], client_gid=client[1])
            until(SECONDS, pair.client.output, pair.client.describe)
            time.sleep(0.2)
            fail()
            check_states(net.hosts[0], ['silent' if self.failure == 'silent' else 'down', 'active'])
            time.sleep(0.5)
            pair.client.kill(signal.SIGTERM)
            for program in pair.client, pair.server:
                succeed(program, SECONDS)
            return float(pair.client.output().split()[1])


class Balanced:
    """The bandwidth of WRITEs on eight connections over cables of 50 Mbit/s: one, or two as a bond."""

    RATE = '50mbit'

    def __init__(self, cables, way):
        self.cables = cables
        self.way = way  # of the frames: 'direct' or 'switch'

    def measure(self, bench):
        mode = 'balance' if self.cables == 2 else 'active-backup'
        with open_bonded(bench, mode, True, self.way) as net:
            slow_down(net, self.RATE)
            server, client = net.ends(IPV4)
            pair = Pair(server[0], client[0], ['ib_write_bw', '-F', '-q', '8', '-s', '65536', '-n', '64'],
                        server[1], server[2], client_gid=client[1])
            return report.bandwidth(pair.finish(SECONDS)[1])
