# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Virtual machines with the devices of `urxe vm`: Debian's kernel and programs, and Linux' drivers vmxnet3 and
vmw_pvrdma. Nothing of urxe is in the guest.
"""
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../guests')]
from guest import Machine  # noqa: E402
from ethernet import prefer  # noqa: E402
from host import START_SECONDS, Failure, Program, until  # noqa: E402
from image import PROGRAMS, Image, modules, only  # noqa: E402

MEMORY_MB = 768
BOOT = ['virtio_pci', 'virtio_net', 'vmxnet3', 'af_packet', '8021q', 'ib_uverbs', 'ib_cm', 'iw_cm', 'rdma_cm', 'rdma_ucm',
        'vmw_pvrdma']
# Modules of single tests: rdma_rxe would take RoCE's UDP port.
LATE = ['crc32_generic', 'rdma_rxe']
# What the guest's kernel logs of a driver that waits in vain or finds nonsense, without and with the driver's own words.
KERNEL_FAULT = re.compile(r'\bBUG:|\bWARNING:|\bOops\b|blocked for more than|transmit queue .* timed out')
FAULT = re.compile(KERNEL_FAULT.pattern + r'|(vmxnet3|vmw_pvrdma) .*([Hh]ang|[Ff]ail|[Ee]rror|[Tt]ime)')
VERBS_CHECK = 'tests/smoke/verbs_check'


class VmImage(Image):
    """The image of these machines."""

    PROGRAMS = [*PROGRAMS, 'ibv_asyncwatch', 'ethtool', 'iperf3', 'qperf']
    PROVIDERS = ['vmw_pvrdma', 'rxe']
    BOOT = BOOT

    def __init__(self, build, programs=(), kernel_folder='kernel'):
        release = os.path.basename(only(f'{build}-guests/{kernel_folder}/lib/modules/*'))
        self.driver = only(f'{build}-guests/vmw_pvrdma-{release}/vmw_pvrdma.ko')
        self.qemu = only(f'{build}-guests/qemu/qemu-system-x86_64')
        super().__init__(build, programs, kernel_folder=kernel_folder)

    def add_modules(self, archive):
        boot = modules(self.package, self.BOOT, [self.driver])
        archive.add_modules('/modules', boot)
        archive.add_modules('/modules/late', modules(self.package, LATE, before=boot))


def make_image(build, kernel_folder='kernel'):
    """An image with the test program that compares every byte."""
    return VmImage(build, [os.path.join(build, VERBS_CHECK)], kernel_folder)


class Device:
    """The process `urxe vm` of one machine. Without `rdma` its only function is vmxnet3."""

    def __init__(self, host, number, rdma=True, arguments=()):
        self.host = host
        self.mac = f'52:54:00:00:02:{number:02x}'
        folder = os.path.join(host.top, f'vm{number}')
        os.mkdir(folder)
        self.sockets = [os.path.join(folder, name) for name in ('vmxnet3', 'pvrdma')[:1 + rdma]]
        self.arguments = ['--socket', ','.join(self.sockets), '--mac', self.mac, *arguments]
        self.process = None
        self.start()

    def spawn(self, *arguments):
        process = self.host.spawn([self.host.urxe, 'vm', '--run-dir', self.host.run_dir, *self.arguments, *arguments])
        # QEMU gives a device up that does not answer for 5 s.
        prefer(process)
        return process

    def start(self):
        self.process = self.spawn()
        until(START_SECONDS, self.listens, lambda: f'no socket: {self.process.describe()}')

    def listens(self):
        if not self.process.running():
            raise Failure(f'ended: {self.process.describe()}')
        return all(map(os.path.exists, self.sockets))

    def replace(self):
        """Another process takes the machine's device over, and this one ends by itself."""
        new = self.spawn('--take-over')
        if self.process.wait(START_SECONDS):
            raise Failure(f'not replaced: {self.process.describe()}\n{new.describe()}')
        self.process = new

    def kill(self):
        """Kills the process; its sockets remain as files."""
        self.process.kill()
        for path in self.sockets:
            if os.path.exists(path):
                os.unlink(path)


def functions(sockets):
    """QEMU's arguments for a PCI device in slot 5 whose functions are served at the sockets."""
    return [word for number, path in enumerate(sockets) for word in ('-device', json.dumps({
        'driver': 'vfio-user-pci', 'socket': {'path': path, 'type': 'unix'}, 'addr': f'5.{number}',
        'multifunction': True, 'rombar': 0,
        # vmxnet3 writes a command, and without a read uses what the command changes in memory, or frees memory that
        # the command takes from the device: QEMU must wait for such a write.
        'x-no-posted-writes': True}))]


def shared_memory(memory_mb):
    """QEMU's arguments by which device processes map the machine's memory."""
    return ['-object', f'memory-backend-memfd,id=mem,size={memory_mb}M,share=on', '-machine', 'q35,memory-backend=mem']


class Vm(Machine):
    """A machine with vmxnet3 and PVRDMA of a Device."""

    RDMA = 'vmw_pvrdma0'

    def __init__(self, image, device, address, name='vm', memory_mb=MEMORY_MB, mtu=1500, extra=()):
        self.device = device
        self.address = address
        self.mtu = mtu
        super().__init__(image, [*shared_memory(memory_mb), *functions(device.sockets), *extra], device.mac, name,
                         memory_mb, qemu=image.qemu)
        try:
            self.configure()
        except BaseException:
            self.close()
            raise

    def configure(self):
        """Gives the NIC its addresses."""
        self.run(f'ip addr flush dev {self.nic()}')
        return self.raise_link(self.mtu, self.address, self.ipv6())

    def ipv6(self):
        return f'fd00:2::{self.address.rpartition(".")[2]}'

    def nic(self):
        return self.interface(self.mac)

    def use_rxe(self):
        """Makes rxe0 on the NIC; from then on it is the machine's RDMA device."""
        self.run(f'for module in /modules/late/*.ko; do insmod $module; done; '
                 f'rdma link add rxe0 type rxe netdev {self.nic()}')
        self.RDMA = 'rxe0'

    def reboot(self):
        """Boots the guest's kernel again, without a power cycle."""
        self.boot_again('reboot -f')

    def crash(self):
        """Makes the guest's kernel panic, after which it boots."""
        self.boot_again('echo c >/proc/sysrq-trigger')

    def boot_again(self, command):
        self.start(command)
        self.jobs.clear()
        self.heard = b''
        self.wait_booted()
        self.configure()

    def unload(self, *names):
        for name in names:
            self.run(f'rmmod {name}')

    def load(self, *names):
        for name in names:
            self.run(f'insmod /modules/*-{name}.ko')

    def expect_no_warning(self):
        """Neither driver warns of anything."""
        lines = self.run("dmesg -r | grep '^<[0-4]>'; true").splitlines()
        warnings = [line for line in lines if re.search(r'vmxnet3|vmw_pvrdma|cut here', line) and 'out-of-tree' not in line]
        if warnings:
            raise Failure(f'{self.name}: the kernel warns: ' + '\n'.join(warnings))

    def expect_healthy(self, fault=FAULT):
        """The guest's kernel reports no fault of a driver."""
        faults = [line for line in self.run('dmesg').splitlines() if fault.search(line)]
        if faults:
            raise Failure(f'{self.name}: the kernel reports {len(faults)} faults: ' + '\n'.join(faults))
