# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A host whose HCA is the device of another host."""
import contextlib
import os

from host import Host, until

ADDRESS = ['--address', '192.0.2.20/24']
DEVICE = ('--device', 'hca0')
OUTER = (*DEVICE, *ADDRESS)


class Nested(Host):
    """
    A host whose device is backed by the device hca0 of `outer`, a Host with the arguments OUTER. Without addresses of its
    own it has those of hca0.
    """

    def __init__(self, build, outer, prefix=(), addresses=tuple(ADDRESS)):
        super().__init__(build, daemon=False, prefix=prefix)
        self.outer = outer
        self.way = 'auto'
        self.gone = 'error'
        self.transport = 'auto'  # of the HCA
        self.log = 'info'
        self.start_daemon(['--hca', 'hca0', *addresses])
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


def write_port(outer, text, attribute='state'):
    """Changes an attribute of the HCA's port, as its daemon does."""
    path = os.path.join(outer.run_dir, f'sys/class/infiniband/hca0/ports/1/{attribute}')
    with open(path + '.new', 'w', encoding='ascii') as file:
        file.write(text + '\n')
    os.rename(path + '.new', path)


def set_port(outer, nested, state):
    """Changes the state of the HCA's port, as '4: ACTIVE', and waits until the other daemon has seen it."""
    write_port(outer, state)
    until(10, lambda: nested.show('device')['hca'][0]['state'] == state.split()[1].lower(),
          lambda: f'the daemon does not see {state}')


def wait_used(nested, used):
    until(10, lambda: nested.show('device')['hca'][0]['used'] == used, lambda: f'not used={used}')


@contextlib.contextmanager
def without_hca(outer, nested):
    """Meanwhile the HCA has no verbs device, as while the kernel removes it."""
    path = os.path.join(outer.run_dir, 'sys/class/infiniband_verbs/uverbs1025')
    aside = os.path.join(outer.run_dir, 'uverbs1025')
    os.rename(path, aside)
    try:
        wait_used(nested, False)
        yield
    finally:
        os.rename(aside, path)
    wait_used(nested, True)
