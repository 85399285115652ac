# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Debian's QEMU under `urxe run`, with a guest that writes to its memory without end, and QEMU's own migration."""
import hashlib
import os
import shutil
import time

from host import Failure, until
from qmp import Qmp

QEMU = 'qemu-system-x86_64'
FILL_SECONDS = 60
MIGRATE_SECONDS = 60
FILLING = 1 << 24  # the firmware's word is at least this while it fills the memory
ROUNDS = 0x100000  # the address of that word


class Machine:
    """
    A virtual machine with an emulated processor. incoming: the URI of the migration that it waits for, or None: it fills
    its memory at once. With running=False the machine stays paused after the migration. With populated=True QEMU touches
    all memory at its start. cpu: the only CPU of QEMU.
    """

    def __init__(self, host, build, mib, incoming=None, running=True, populated=False, cpu=None):
        self.host = host
        self.mib = mib
        socket_path = os.path.join(host.top, f'qmp-{time.monotonic_ns()}')
        self.program = host.start(
            # The kernel kills QEMU when this process ends in any way.
            'setpriv', '--pdeathsig', 'KILL', *([] if cpu is None else ['taskset', '-c', str(cpu)]),
            QEMU, '-accel', 'tcg', '-nodefaults', '-no-user-config', '-display', 'none', '-m', str(mib),
            '-object', f'memory-backend-ram,id=pc.ram,size={mib}M,prealloc={"on" if populated else "off"}',
            '-machine', 'pc,memory-backend=pc.ram', '-bios', os.path.join(build, 'tests/harness/dirty_memory.bin'),
            '-qmp', f'unix:{socket_path},server=on,wait=off', *([] if running else ['-S']),
            *(['-incoming', incoming] if incoming else []))
        try:
            self.qmp = Qmp(socket_path)
        except Failure as failure:
            raise Failure(f'{failure}\n{self.program.describe()}') from None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.qmp.close()
        self.program.kill()

    def rounds(self):
        """How often the guest has written to all of its dirty pages; None while it fills its memory."""
        text = self.qmp.ask('human-monitor-command', command_line=f'xp /1wx {ROUNDS:#x}')
        number = int(text.split()[1], 16)
        return number if 0 < number < FILLING else None

    def wait_filled(self):
        until(FILL_SECONDS, self.rounds, lambda: 'the guest does not fill its memory')

    def check_alive(self, what):
        """Checks that the guest goes on."""
        before = self.rounds()
        until(20, lambda: self.rounds() != before, lambda: f'{what}: the guest stands still: {self.state()}')

    def state(self):
        return self.qmp.ask('query-status')['status']

    def set_limits(self, pin_all, bandwidth=1 << 40, downtime_ms=300):
        """bandwidth: bytes per second."""
        self.qmp.ask('migrate-set-capabilities',
                     capabilities=[{'capability': 'rdma-pin-all', 'state': pin_all}])
        self.qmp.ask('migrate-set-parameters', max_bandwidth=bandwidth, downtime_limit=downtime_ms)

    def migrate(self, uri):
        """Starts the migration to a machine that waits for it."""
        self.qmp.ask('migrate', uri=uri)

    def progress(self):
        return self.qmp.ask('query-migrate')

    def wait_migration(self, *states):
        """Waits until the migration is in one of these states; returns QEMU's report."""
        until(MIGRATE_SECONDS, lambda: self.progress().get('status') in states,
              lambda: f'no migration {" or ".join(states)}: {self.progress()}\n{self.program.errors()}')
        return self.progress()

    def wait_half_way(self):
        """Waits until the whole memory has gone once, and changed pages follow."""
        def follows():
            report = self.progress()
            if report.get('status') in ('failed', 'completed', 'cancelled'):
                raise Failure(f'the migration has ended: {report}\n{self.program.describe()}')
            return report.get('ram', {}).get('dirty-sync-count', 0) > 2

        until(MIGRATE_SECONDS, follows, lambda: f'no progress: {self.progress()}')
        return self.progress()

    def memory(self):
        """The digest of the memory of a machine that stands still."""
        path = os.path.join(self.host.top, 'memory')
        self.qmp.ask('pmemsave', val=0, size=self.mib << 20, filename=path)
        with open(path, 'rb') as file:
            digest = hashlib.file_digest(file, 'sha256').hexdigest()
        os.unlink(path)
        return digest


def installed():
    return shutil.which(QEMU)
