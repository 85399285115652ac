#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
many.py BUILD CHECK: processes with more queue pairs than a lease has QPNs (verbs_many.c): as many as the
device allows, across a restart of the daemon, and killed.
"""
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from host import Failure, Host, main, succeed, until  # noqa: E402

BLOCK = 4096
MOST = 65536
NEEDED = 3 << 30  # bytes of memory for two processes with MOST queue pairs, with reserve
SOME = 9000       # queue pairs, for which a process needs three leases


def available():
    with open('/proc/meminfo', encoding='ascii') as info:
        return 1024 * int(re.search(r'MemAvailable: +(\d+)', info.read()).group(1))


def blocks(count):
    return (count + BLOCK - 1) // BLOCK


class Many:
    """Starts the two processes of verbs_many.c, and waits until they are connected."""

    def __init__(self, build, host, count):
        host.environment.update(URXE_LOG='info', URXE_RECONNECT_S='60')
        self.host = host
        self.program = host.start(os.path.join(build, 'tests/smoke/verbs_many'), str(count),
                                  stdin=subprocess.PIPE)
        until(60, self.ready, lambda: f'not ready: {self.program.describe()}')
        leased = re.findall(r'QPNs (0x[0-9a-f]+) to', self.program.errors())
        if len(leased) != 2 * blocks(count) or len(set(leased)) != len(leased):
            raise Failure(f'leased for {count} queue pairs each: {leased}')

    def ready(self):
        if not self.program.running():
            raise Failure(f'has ended: {self.program.describe()}')
        return self.program.output() == 'ready\n'

    def finish(self):
        self.program.process.stdin.write(b'\n')
        self.program.process.stdin.close()
        succeed(self.program, 60)

    def nothing_left(self):
        def gone():
            try:
                return self.host.show('lease')['leases'] == []
            except Failure:  # a process that is about to end does not answer
                return False
        until(20, gone, lambda: f'still leased: {self.host.show("lease")}')


def check_limit(build):
    """Both processes can create max_qp queue pairs, and no more."""
    count = MOST if available() > NEEDED else SOME
    print(f'{count} queue pairs')
    with Host(build) as host:
        many = Many(build, host, count)
        leases = host.show('lease')['leases']
        if sum(lease['qps'] for lease in leases) != 2 * count:
            raise Failure(f'not {count} queue pairs each: {leases}')
        many.finish()
        many.nothing_left()


def check_restart(build):
    """A new daemon restores all leases of a process."""
    with Host(build) as host:
        many = Many(build, host, SOME)
        host.daemon.kill(signal.SIGKILL)
        host.start_daemon()
        until(20, lambda: many.program.errors().count('attached again') == 2,
              lambda: f'does not find the new daemon: {many.program.describe()}')
        many.finish()
        many.nothing_left()


def check_death(build):
    """The leases of a killed process are free again."""
    with Host(build) as host:
        many = Many(build, host, SOME)
        many.program.kill()
        many.nothing_left()


CHECKS = {'limit': check_limit, 'restart': check_restart, 'death': check_death}

main(lambda: CHECKS[sys.argv[2]](sys.argv[1]))
