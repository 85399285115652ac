#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
urxed starts and ends at an interface, and changes nothing of it that the kernel reports. A report that the MAC has
changed, also to the same MAC, makes the kernel remove all GIDs of RDMA devices on the interface for a moment.
"""
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from host import Failure, Host, Program, until  # noqa: E402
from network import inside, must, run  # noqa: E402

NAMES = [f'events{os.getpid()}{side}' for side in 'ab']
MTU = 1400


class Monitor:
    """What the kernel reports of the interfaces of a namespace, a line for each report."""

    def __init__(self, name):
        self.name = name
        self.program = Program([*inside(name), 'ip', '-o', 'monitor', 'link'], os.environ)
        self.changes = 0
        until(10, lambda: self.change() and self.lines(), self.program.describe)

    def lines(self):
        return self.program.output().splitlines()

    def change(self):
        self.changes += 1
        must('-n', self.name, 'link', 'set', 'eth0', 'mtu', str(MTU + self.changes))
        return True

    def reports(self):
        """All reports so far: the last one is that of a change."""
        self.change()
        until(10, lambda: any(f'mtu {MTU + self.changes} ' in line for line in self.lines()), self.program.describe)
        return self.lines()


def check():
    monitor = Monitor(NAMES[0])
    before = len(monitor.reports())
    options = ['--uplink', 'af_packet:eth0']
    with Host(BUILD, prefix=inside(NAMES[0]), arguments=options) as host:
        host.run('ibv_devinfo')
        host.daemon.kill(signal.SIGTERM)
        host.daemon.wait(10)
        host.start_daemon(options)
    reports = monitor.reports()[before:-1]
    monitor.program.kill()
    if reports:
        raise Failure('the kernel reports changes:\n' + '\n'.join(reports))


BUILD = sys.argv[1]
if __name__ == '__main__':
    run(check, NAMES)
