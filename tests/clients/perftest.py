# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Bandwidth and latency. It compares no contents."""
import report
from row import Connected, Pair

PACKAGES = ['perftest']
PORT = 18515


# A second connection tells the client to come before its server listens for it.
TOO_EARLY = 'RDMA_CM_EVENT_REJECTED; error: 8'


def row(kind, command, **more):
    argv = command.split()
    return kind(server=command, client=f'{command} {{}}',
                check=lambda client, _server: report.check(argv, '', client), **more)


ROWS = [row(Pair, command, port=PORT) for command in (
    'ib_send_bw -F -a -n 100',
    'ib_write_bw -F -a -n 100',
    'ib_read_bw -F -a -n 100',
    'ib_send_lat -F -a -n 100',
    'ib_write_lat -F -a -n 100',
    'ib_read_lat -F -a -n 100',
    'ib_atomic_bw -F',
    'ib_atomic_lat -F',
)]
ROWS += [row(Connected, command, too_early=TOO_EARLY) for command in (
    'ib_write_bw -F -R',
    'ib_send_bw -F -R -e',
)]
