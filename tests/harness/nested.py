# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A host whose HCA is the device of another host."""
from host import Host

ADDRESS = ['--address', '192.0.2.20/24']
OUTER = ('--device', 'hca0', *ADDRESS)


class Nested(Host):
    """A host whose device is backed by the device hca0 of `outer`, a Host with the arguments OUTER."""

    def __init__(self, build, outer, prefix=()):
        super().__init__(build, daemon=False, prefix=prefix)
        self.outer = outer
        self.way = 'auto'
        self.gone = 'error'
        self.transport = 'auto'  # of the HCA
        self.log = 'info'
        self.start_daemon(['--hca', 'hca0', *ADDRESS])
        # One library for both, which the inner `urxe run` finds preloaded.
        self.urxe = outer.urxe

    def start_daemon(self, arguments=None):
        self.environment.update(URXE_OUTER_DIR=self.outer.run_dir)
        super().start_daemon(arguments)
        del self.environment['URXE_OUTER_DIR']

    def command(self, argv):
        return [self.urxe, 'run', '--run-dir', self.outer.run_dir, '--transport', self.transport, '--',
                self.urxe, 'run', '--run-dir', self.run_dir, '--way', self.way,
                '--hca-gone', self.gone, '--', 'env', f'URXE_LOG={self.log}', *argv]

