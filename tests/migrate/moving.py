# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A virtual machine that QEMU migrates from host to host, with urxe inside."""
import contextlib
import os
import socket
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../guests')]
from guest import Machine, command  # noqa: E402
from host import Failure, until  # noqa: E402
from image import Image, only  # noqa: E402
from qmp import Qmp  # noqa: E402

MEMORY_MB = 400
URXE = '/urxe/tools/urxe run --'


class MovingImage(Image):
    """The image of guests with urxe; the newer QEMU runs it."""

    def __init__(self, build, programs=()):
        super().__init__(build, programs, urxe=True, more_modules=['virtio_blk'])
        self.qemu = only(f'{build}-guests/qemu/qemu-system-x86_64')


class Place:
    """A QEMU process that runs the machine, or waits for it."""

    def __init__(self, machine, port, incoming=()):
        self.machine = machine
        self.top = tempfile.TemporaryDirectory(prefix='place-')
        folder = self.top.name
        self.incoming = os.path.join(folder, 'incoming')
        self.agent = os.path.join(folder, 'agent')
        qmp = os.path.join(folder, 'qmp')
        self.qemu = machine.start_qemu([
            *port.host.prefix, *command(machine.image, folder, machine.memory_mb, qemu=machine.image.qemu),
            '-smp', '1', '-no-reboot', '-qmp', f'unix:{qmp},server=on,wait=off', *machine.more,
            *port.arguments(folder, machine.memory_mb), '-device', f'{port.device},netdev=n0,mac={machine.mac}', *incoming])
        self.qmp = Qmp(qmp)

    def connect_agent(self):
        agent = socket.socket(socket.AF_UNIX)
        agent.connect(self.agent)
        return agent

    def close(self):
        self.qemu.kill()
        self.qmp.close()
        self.top.cleanup()


class Gap:
    """A time in which no QEMU ran the machine: stop and resumption by the wall clock, and QEMU's own figure in ms."""

    def __init__(self, source, target, downtime_ms=None):
        self.stopped_at = source.qmp.event_time('STOP')
        self.resumed_at = target.qmp.event_time('RESUME')
        self.gap_ms = (self.resumed_at - self.stopped_at) * 1e3
        self.downtime_ms = self.gap_ms if downtime_ms is None else downtime_ms


class Moving(Machine):
    """
    A guest at a port of a host (ports.py). `address` is its IPv4 address. The agent is on a serial line, so commands go
    on wherever the machine runs.
    """

    def __init__(self, image, port, mac, address, name='vm', memory_mb=MEMORY_MB, more=()):
        # pylint: disable=super-init-not-called
        self.image = image
        self.mac = mac
        self.address = address
        self.name = name
        self.memory_mb = memory_mb
        self.more = list(more)
        self.jobs = {}
        self.started = 0
        self.heard = b''
        self.port = 18600
        self.at = port
        self.place = Place(self, port)
        self.socket = self.place.connect_agent()
        self.socket.setblocking(False)
        try:
            self.wait_booted()
        except BaseException:
            self.close()
            raise

    @property
    def qemu(self):
        return self.place.qemu

    @property
    def console(self):
        return os.path.join(self.place.top.name, 'console')

    def raise_control_nic(self):
        """The machine has one NIC, which moves."""

    def use_urxe(self, mtu=1500):
        """Starts urxed on the NIC; the GIDs are those of its addresses."""
        self.run('rmmod rdma_ucm && rmmod rdma_rxe')
        name = self.raise_link(mtu, self.address)
        self.run(f'hostname {self.name}; /urxe/tools/urxed --uplink af_packet:{name}')
        self.RDMA = 'urxe0'
        self.prefix = URXE + ' '
        self.index = self.gid(self.address, self.run('echo /run/urxe/*/sys/class/infiniband/urxe0').strip())

    def use_rxe(self, mtu=1500):
        self.make_rxe(self.address, mtu)
        self.prefix = ''
        self.index = self.gid(self.address)

    # --- Events

    def migrate(self, port, downtime_ms=300, linger=0):
        """
        Live migration to another port; returns the Gap. The source's QEMU ends, as libvirt has it, `linger` seconds
        after the end of the migration.
        """
        target = Place(self, port, ['-incoming', 'defer'])
        agent = target.connect_agent()
        target.qmp.ask('migrate-incoming', uri=f'unix:{target.incoming}')
        source = self.place
        source.qmp.ask('migrate-set-parameters', downtime_limit=downtime_ms, max_bandwidth=1 << 34)
        source.qmp.ask('migrate', uri=f'unix:{target.incoming}')
        self.wait_migrated(source)
        until(60, lambda: target.qmp.ask('query-status')['status'] == 'running', self.describe)
        move = Gap(source, target, source.qmp.ask('query-migrate')['downtime'])
        time.sleep(linger)
        self.leave(source, target, agent, port)
        return move

    def wait_migrated(self, source):
        def ended():
            status = source.qmp.ask('query-migrate')['status']
            if status in ('failed', 'cancelled'):
                raise Failure(f'migration {source.qmp.ask("query-migrate")}\n{self.describe()}')
            return status == 'completed'
        until(120, ended, lambda: f'no end: {source.qmp.ask("query-migrate")}')

    def leave(self, source, target, agent, port):
        """Reads the source's last answers, and goes on at the target."""
        source.qemu.kill()
        with contextlib.suppress(BlockingIOError, ConnectionResetError):
            while part := self.socket.recv(65536):
                self.heard += part
        self.socket.close()
        source.close()
        self.place, self.at, self.socket = target, port, agent
        self.socket.setblocking(False)

    def cancel_migration(self, port):
        """Begins a slow migration and cancels it; the machine stays."""
        target = Place(self, port, ['-incoming', 'defer'])
        target.qmp.ask('migrate-incoming', uri=f'unix:{target.incoming}')
        source = self.place
        source.qmp.ask('migrate-set-parameters', max_bandwidth=1 << 20)
        source.qmp.ask('migrate', uri=f'unix:{target.incoming}')
        time.sleep(2)
        source.qmp.ask('migrate_cancel')
        until(60, lambda: source.qmp.ask('query-migrate')['status'] == 'cancelled',
              lambda: str(source.qmp.ask('query-migrate')))
        target.close()

    def suspend(self, port):
        """Saves the machine to a file, ends its QEMU, and starts it from the file at another port."""
        source = self.place
        saved = os.path.join(source.top.name, 'saved')
        source.qmp.ask('stop')
        source.qmp.ask('migrate-set-parameters', max_bandwidth=1 << 34)
        source.qmp.ask('migrate', uri=f'file:{saved}')
        self.wait_migrated(source)
        target = Place(self, port, ['-incoming', 'defer'])
        agent = target.connect_agent()
        target.qmp.ask('migrate-incoming', uri=f'file:{saved}')
        until(60, lambda: target.qmp.ask('query-migrate').get('status') == 'completed', self.describe)
        self.leave(source, target, agent, port)
        target.qmp.ask('cont')

    def hibernate(self, port):
        """The guest's kernel saves the memory to its disk and switches the machine off; it boots at another port."""
        self.run('grep -q /dev/vda /proc/swaps || { mkswap /dev/vda && swapon /dev/vda; }')
        job = self.start('echo shutdown >/sys/power/disk; echo disk >/sys/power/state')
        source = self.place
        until(120, lambda: not source.qemu.running(), self.describe)
        target = Place(self, port)
        self.leave(source, target, target.connect_agent(), port)
        if job.wait(120):
            raise Failure(f'no hibernation: {job.describe()}\n{self.describe()}')

    def add_disk(self, path):
        """Adds a disk image that no device uses, in which snapshots are stored."""
        qmp = self.place.qmp
        qmp.job('blockdev-create', options={'driver': 'file', 'filename': path, 'size': 0})
        qmp.ask('blockdev-add', driver='file', filename=path, node_name='file')
        qmp.job('blockdev-create', options={'driver': 'qcow2', 'file': 'file', 'size': 2 << 30})
        qmp.ask('blockdev-add', driver='qcow2', file='file', node_name='disk')

    def snapshot(self, name):
        """Saves the machine, as savevm."""
        self.place.qmp.job('snapshot-save', tag=name, vmstate='disk', devices=['disk'])

    def restore(self, name):
        """Goes back to a snapshot, as loadvm."""
        self.place.qmp.job('snapshot-load', tag=name, vmstate='disk', devices=['disk'])

    def stop_and_cont(self, seconds, announces=False):
        """Returns the Gap. QEMU announces the machine only after a migration, or by `announces`."""
        qmp = self.place.qmp
        qmp.ask('stop')
        time.sleep(seconds)
        qmp.ask('cont')
        if announces:
            qmp.ask('announce-self', initial=50, max=550, rounds=5, step=100)
        return Gap(self.place, self.place)

    def close(self):
        self.place.close()
        self.socket.close()
