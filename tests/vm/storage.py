#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Storage over RDMA by Linux' own kernel modules: NVMe (nvmet-rdma, nvme-rdma), iSCSI (isert, iser) and NFS (knfsd,
xprtrdma). One end is a machine with PVRDMA; the other one is another such machine, or one with rdma_rxe. Every byte
that fio reads is compared, and the server's disk with what the client wrote.
"""
import contextlib
import os
import re
import sys

from verbs import Lab, add_host, wait_gid
from vm import BOOT, FAULT, LATE, Vm, VmImage
from host import Failure, main, succeed
from image import modules

SCRIPTS = os.path.join(os.path.dirname(os.path.realpath(__file__)), 'storage')
DISK = '/dev/vda'
DISK_MB = 48
SECONDS = 300
MTU = 4200  # RDMA packets of 4096 bytes fit
PVRDMA, DRIVER = '0000:00:05.1', '/sys/bus/pci/drivers/vmw_pvrdma'
FIO = ('fio --name=verify --directory=/mnt --direct=1 --ioengine=libaio --verify=crc32c --verify_fatal=1 '
       '--randrepeat=0 --minimal ')
SHORT = FIO + '--rw=randwrite --bs=4k --size=4M --iodepth=16'
LONG = FIO + '--rw=randwrite --bsrange=4k-1m --size=16M --iodepth=4'
MIXED = FIO + '--rw=randrw --bsrange=4k-64k --size=8M --iodepth=8 --fsync=32'
# Writes for ten seconds, then reads all at full speed. Without a disturbance it has ended after LONGER seconds.
SLOW = FIO + '--rw=randwrite --bs=16k --size=16M --iodepth=8 --rate=,1600k'
LONGER = 20
# fio lists the writes that have ended without an error in /tmp/ended_iops.log.
LOGGED = SLOW + ' --write_iops_log=/tmp/ended --log_offset=1 --per_job_logs=0'


class StorageImage(VmImage):
    PROGRAMS = [*VmImage.PROGRAMS, 'fio', 'mkfs.ext4', 'iscsid', 'iscsiadm']
    FOLDERS = [SCRIPTS]
    DISKS = ['virtio_blk', 'ext4', 'crc32c_generic']

    def __init__(self, build, protocol):
        self.protocol = protocol
        super().__init__(build)

    def add_modules(self, archive):
        boot = modules(self.package, BOOT + self.DISKS, [self.driver])
        archive.add_modules('/modules', boot)
        archive.add_modules('/modules/late', modules(self.package, LATE, before=boot))
        archive.add_modules('/modules/storage', modules(self.package, self.protocol.MODULES, before=boot))


def script(vm, name, *words):
    return vm.run(' '.join(['sh', f'{SCRIPTS}/{name}.sh', *words]), SECONDS).strip()


# --- Protocols. The client has the file system at /mnt.

class Block:
    """A disk of the server is a disk of the client, which makes the file system."""

    def __init__(self, name, names, survives_removal, refusal=None):
        self.name = name
        self.MODULES = names
        # Whether requests wait when the client's RDMA device has gone.
        self.survives_removal = survives_removal
        # What the client's kernel logs of a request that the protocol refuses while the driver leaves the device.
        self.refusal = refusal

    def serve(self, server, client):
        script(server, self.name, 'serve', server.address, DISK)

    def begin(self, server, client):
        self.serve(server, client)
        script(client, self.name, 'connect', server.address)
        client.run(f'mkfs.ext4 -q {self.device(client)}', SECONDS)
        self.mount(client)

    def device(self, client):
        return script(client, self.name, 'device')

    def mount(self, client):
        client.run(f'mkdir -p /mnt && mount -t ext4 {self.device(client)} /mnt', SECONDS)

    def attach(self, server, client):
        script(client, self.name, 'connect', server.address)
        self.mount(client)

    def detach(self, client):
        client.run('umount /mnt', SECONDS)
        script(client, self.name, 'disconnect')

    def compare(self, server, client):
        client.run('umount /mnt', SECONDS)
        compare(client, f'cat {self.device(client)}', server, f'cat {DISK}')
        self.mount(client)


class Nfs:
    """The server makes the file system."""
    name = 'nfs'
    MODULES = ['nfsd', 'nfsv4', 'rpcrdma', 'md5']
    survives_removal = True
    refusal = None

    def serve(self, server, client):
        script(server, self.name, 'serve', server.address, DISK, client.address)

    def begin(self, server, client):
        server.run(f'mkfs.ext4 -q {DISK}', SECONDS)
        self.serve(server, client)
        self.attach(server, client)

    def attach(self, server, client):
        client.run('mkdir -p /mnt')
        script(client, self.name, 'mount_export', server.address)

    def detach(self, client):
        client.run('umount /mnt', SECONDS)

    def compare(self, server, client):
        compare(client, 'cd /mnt && md5sum verify.*', server, 'cd /srv/disk && md5sum verify.*')


def compare(client, reading, server, reading_there):
    """What the client reads, without its cache, is what the server has."""
    sums = [vm.run(f'sync; echo 3 >/proc/sys/vm/drop_caches; ({command}) | md5sum', SECONDS)
            for vm, command in ((client, reading), (server, reading_there))]
    if sums[0] != sums[1]:
        raise Failure(f'the client reads {sums[0]}, and the server has {sums[1]}')


PROTOCOLS = {
    'nvme': Block('nvme', ['nvmet_rdma', 'nvme_rdma'], survives_removal=False),
    # The connection ends (iser_disconnected_handler) before libiscsi blocks the session. A request in between gets
    # ENODEV from iscsi_iser_task_init, and libiscsi ends it with DID_ABORT, which SCSI does not repeat.
    'iser': Block('iser', ['sd_mod', 'target_core_iblock', 'ib_isert', 'ib_iser'], survives_removal=True,
                  refusal='Failed to init task'),
    'nfs': Nfs(),
}


# --- The machines

class Pair:
    """A server and a client. If `rxe_serves`, the server has rdma_rxe in place of PVRDMA."""

    def __init__(self, build, stack, protocol, rxe_serves):
        self.protocol = protocol
        self.rxe_serves = rxe_serves
        self.lab = Lab(build, stack, StorageImage(build, protocol))
        host = add_host(build, stack)
        disk = os.path.join(host.top, 'disk')
        with open(disk, 'wb') as file:
            file.truncate(DISK_MB << 20)
        self.drive = ['-drive', f'file={disk},if=virtio,format=raw']
        self.server = self.lab.boot(host, not rxe_serves, mtu=MTU, arguments=['--mtu', str(MTU)], extra=self.drive)
        self.client = self.lab.boot(host, True, mtu=MTU, arguments=['--mtu', str(MTU)])
        self.prepare(self.server, rxe_serves)
        self.prepare(self.client, False)

    def prepare(self, vm, rxe):
        vm.run('for module in /modules/storage/*.ko; do insmod $module || exit 1; done')
        if rxe:
            vm.use_rxe()
        wait_gid(vm, vm.address)

    def begin(self):
        self.client.wait_neighbour(self.server.address)
        # Requests wait while the server boots, for longer than the 120 s at which the kernel reports a fault by default.
        self.client.run('echo 1200 >/proc/sys/kernel/hung_task_timeout_secs')
        self.protocol.begin(self.server, self.client)

    def boot_server_again(self):
        """The server loses its power; its disk remains."""
        old = self.server
        old.kill()
        self.server = self.lab.stack.enter_context(
            Vm(self.lab.image, old.device, old.address, old.name, mtu=MTU, extra=self.drive))
        self.lab.machines[0] = self.server
        self.prepare(self.server, self.rxe_serves)

    def serve(self):
        self.protocol.serve(self.server, self.client)

    def compare(self):
        self.protocol.compare(self.server, self.client)


# --- Checks of a file system that is mounted

def check_traffic(pair):
    for command in SHORT, LONG, MIXED:
        succeed(pair.client.start(command), SECONDS)
    pair.compare()


def check_again(pair):
    """Another connection finds the same files."""
    pair.protocol.detach(pair.client)
    pair.protocol.attach(pair.server, pair.client)
    pair.compare()


def start_load(client, command=SLOW):
    """Starts fio, which the caller disturbs."""
    job = client.start(command)
    client.run('sleep 3')
    return job


def expect_waiting(vm, job):
    """fio waits for the end of a disturbance. It would have ended, had it not been disturbed, while `vm` sleeps."""
    vm.run(f'sleep {LONGER}')
    if not job.running():
        raise Failure(f'fio ended too early: {job.describe()}')


def check_link(pair):
    """The server's NIC is down for twenty seconds."""
    job = start_load(pair.client)
    pair.server.run(f'ip link set {pair.server.nic()} down')
    expect_waiting(pair.server, job)
    pair.server.configure()
    succeed(job, SECONDS)
    pair.compare()


def check_power(pair):
    """The server's QEMU is killed, and another one boots with the same disk: requests wait meanwhile."""
    job = start_load(pair.client)
    pair.boot_server_again()
    expect_waiting(pair.client, job)
    pair.serve()
    succeed(job, SECONDS)
    pair.compare()


def expect_refused(pair, job):
    """The protocol has refused as many requests, at least, as the disk has errors."""
    log = pair.client.run('dmesg')
    refused = log.count(pair.protocol.refusal) if pair.protocol.refusal else 0
    errors = log.count('I/O error, dev')
    print(f'{refused} requests refused, {errors} errors', flush=True)
    if not refused or errors > refused:
        raise Failure(f'{errors} errors, {refused} requests refused: {job.describe()}')


def check_removal(pair):
    """
    The client's driver leaves the device under load, and returns. Either all requests wait, or fio has an error and
    another connection finds each write that had ended before.
    """
    client, protocol = pair.client, pair.protocol
    # fio overwrites blocks that the disk has, which needs no journal: a write that has ended is on the server's disk.
    # Blocks of earlier runs would have right checksums, too, and fio would append to its log.
    client.run('rm -f /tmp/ended_iops.log; dd if=/dev/zero of=/mnt/verify.0.0 bs=1M count=16 && sync', SECONDS)
    job = start_load(client, LOGGED)
    client.run(f'echo {PVRDMA} >{DRIVER}/unbind', SECONDS)
    if not protocol.survives_removal and not job.wait(SECONDS):
        raise Failure(f'fio has no error: {job.describe()}')
    if protocol.survives_removal:
        client.run(f'sleep {LONGER}')
        if not job.running():
            expect_refused(pair, job)
    client.run(f'echo {PVRDMA} >{DRIVER}/bind', SECONDS)
    wait_gid(client, client.address)
    if job.wait(SECONDS):
        if protocol.survives_removal:
            expect_refused(pair, job)
            protocol.detach(client)
        else:
            client.run('umount /mnt', SECONDS)
        protocol.attach(pair.server, client)
        script(client, 'ended', 'verify')
    pair.compare()


def check_refusal(pair):
    """Linux' PVRDMA driver has no DMA regions with remote rights, which nvme-rdma wants if it registers no memory."""
    client = pair.client
    pair.protocol.detach(client)
    client.run('rmmod nvme_rdma && insmod /modules/storage/*-nvme_rdma.ko register_always=N')
    job = client.start(f'sh {SCRIPTS}/nvme.sh connect {pair.server.address}')
    if not job.wait(SECONDS) or 'unsupported dma mr access flags' not in client.run('dmesg'):
        raise Failure(f'not refused: {job.describe()}')
    client.run('rmmod nvme_rdma && insmod /modules/storage/*-nvme_rdma.ko')
    pair.protocol.attach(pair.server, client)
    pair.compare()


# Whether the server has rdma_rxe, and the checks.
PLACES = {
    'pair': (False, [check_traffic, check_again, check_link, check_power, check_removal]),
    'refusal': (False, [check_refusal]),
    'rxe_serves': (True, [check_traffic, check_again, check_power]),
}


# LIO ends a connection of iSCSI in a thread with a pending signal, at which Linux' PVRDMA driver abandons a command
# (pvrdma_cmd_recv waits interruptibly): docs/virtual-machines.md.
ABANDONED = re.compile(r'completion timeout or interrupted|could not modify queuepair, error: -110|'
                       r'__ib_drain_[rs]q|Modules linked in')


def expect_healthy(pair):
    for vm in pair.lab.machines:
        if pair.protocol.name != 'iser' or vm is not pair.server:
            vm.expect_healthy()
            continue
        faults = [line for line in vm.run('dmesg').splitlines() if FAULT.search(line) and not ABANDONED.search(line)]
        if faults:
            raise Failure('\n'.join(faults))


def run():
    build, name, place = sys.argv[1:4]
    rxe_serves, checks = PLACES[place]
    with contextlib.ExitStack() as stack:
        pair = Pair(build, stack, PROTOCOLS[name], rxe_serves)
        try:
            pair.begin()
            for check in checks:
                print(check.__name__, flush=True)
                check(pair)
        except Failure as failure:
            kernels = '\n'.join(f'{vm.name}: {vm.run("dmesg | tail -40")}' for vm in pair.lab.machines if vm.qemu.running())
            raise Failure(f'{failure}\n{kernels}') from None
        expect_healthy(pair)


if __name__ == '__main__':
    main(run)
