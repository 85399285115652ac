#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Runs one case of verbs_corners.c."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from host import Host, main, succeed, until  # noqa: E402


DAEMON_ARGUMENTS = {'pkey': ['--pkey', '0xffff', '--pkey', '0x8001']}


# Pages of an on-demand region that datagrams fill.
PAGES = 8


def check_page_faults(host, program):
    """The counter of the waiting program has a fault for each page."""
    of = f'verbs_corners-{program.process.pid}'

    def faults():
        return sum(row['value'] for row in host.show('counter')['counters']
                   if row['of'] == of and row['name'] == 'page_faults')
    until(30, lambda: faults() >= PAGES, lambda: f'{faults()} faults: {program.describe()}')
    program.process.stdin.close()
    succeed(program, 30)


def run():
    build, corner = sys.argv[1:]
    program = os.path.join(build, 'tests/smoke/verbs_corners')
    with Host(build, arguments=DAEMON_ARGUMENTS.get(corner, ())) as host:
        if corner == 'on_demand':
            check_page_faults(host, host.start(program, corner, stdin=subprocess.PIPE))
        else:
            print(host.run(program, corner, seconds=120))


main(run)
