# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
iSCSI over RDMA: the target is `tgtd`, the initiators use libiscsi. The target serves DISK, a file of 64 MiB, after these commands:

    sysctl vm.nr_hugepages=80
    urxe run -- tgtd -f -C 5 --iser pool_sz_mb=64
    tgtadm -C 5 --lld iser --mode target --op new --tid 1 -T iqn.2026-01.example:disk
    tgtadm -C 5 --lld iser --mode logicalunit --op new --tid 1 --lun 1 -b DISK
    tgtadm -C 5 --lld iser --mode target --op bind --tid 1 -I ALL
    tgtadm -C 5 --lld iser --mode target --op bind --tid 1 -Q iqn.2026-01.example:initiator

- The memory of `tgtd`'s pool is at least 128 MiB of huge pages. Without them the target refuses each login.
- The target accepts an initiator only if both its address (`-I`) and its name (`-Q`) are allowed.
- libiscsi 1.19 transfers at most 256 KiB per request; a larger one never ends.
- libiscsi 1.19 does not initialise its list of send descriptors. So each initiator crashes where `MALLOC_PERTURB_` is set.

The tests then kill the target, start it again, let `qemu-io` read alone, and compare DISK with the pattern.
"""
import fcntl
import os
import re
import subprocess
from contextlib import contextmanager

from host import BUSY, Failure, skip, until
from row import SECONDS, Pair, Refusal

PACKAGES = ['tgt', 'libiscsi-bin', 'qemu-utils', 'qemu-block-extra']
NAME = 'iqn.2026-01.example'
CONTROL = '5'
PAGES = 80  # huge pages of 2 MiB, for tgtd's pool
SIZE = 64 << 20
PATTERN = 0xa5
BYTES = 256 << 10  # the most that libiscsi transfers at once
URL = f'iscsi://{{}}:3260/{NAME}:disk/1?iser'
IMAGE = (f'driver=iscsi,transport=iser,portal={{}}:3260,target={NAME}:disk,lun=1,'
         f'initiator-name={NAME}:initiator')
RESERVED = '/proc/sys/vm/nr_hugepages'


def read_pages(file):
    file.seek(0)
    return int(file.read())


def add_pages(count):
    """
    Changes the number of huge pages, which other programs of the machine may use as well. Returns how many pages came:
    the kernel may have fewer.
    """
    with open(RESERVED, 'r+', encoding='ascii') as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        before = read_pages(file)
        file.seek(0)
        file.write(str(before + count))
        file.flush()
        return read_pages(file) - before


def free_pages():
    with open('/proc/meminfo', encoding='ascii') as file:
        return int(re.search(r'^HugePages_Free: +(\d+)$', file.read(), re.MULTILINE)[1])


@contextmanager
def reserved_pages():
    added = add_pages(PAGES)
    try:
        if free_pages() < PAGES:
            skip('the kernel gives no huge pages')
        yield
    finally:
        add_pages(-added)


def disk(host):
    return os.path.join(host.top, 'disk')


def administer(host, *words):
    return subprocess.run([*host.prefix, 'tgtadm', '-C', CONTROL, '--lld', 'iser', *words], capture_output=True,
                          text=True, timeout=20 * BUSY, check=False)


def must(host, *words):
    result = administer(host, *words)
    if result.returncode:
        raise Failure(f'tgtadm {" ".join(words)}: {result.stdout}{result.stderr}')


def start_target(at, command):
    """Starts the target, and waits until it obeys tgtadm."""
    server = at.server.start(*command.split())
    until(20, lambda: not administer(at.server, '--mode', 'sys', '--op', 'show').returncode or not server.running(),
          lambda: f'tgtd does not obey: {server.describe()}')
    return server


class OnTarget(Pair):
    """The server is the target, with its disk."""

    def start_server(self, at):
        for name in (f'/var/run/tgtd/socket.{CONTROL}', f'/var/run/tgtd/socket.{CONTROL}.lock'):
            if os.path.exists(name):  # of a killed target
                os.remove(name)
        server = start_target(at, self.server)
        target = ['--mode', 'target', '--tid', '1']
        must(at.server, *target, '--op', 'new', '-T', f'{NAME}:disk')
        must(at.server, '--mode', 'logicalunit', '--tid', '1', '--op', 'new', '--lun', '1', '-b', disk(at.server))
        must(at.server, *target, '--op', 'bind', '-I', 'ALL')
        must(at.server, *target, '--op', 'bind', '-Q', f'{NAME}:initiator')
        return server

    def run(self, at):
        for host in (at.server, at.client):
            # meson sets it. libiscsi 1.19 takes the content of its fresh memory for a pointer.
            host.environment.pop('MALLOC_PERTURB_', None)
        with reserved_pages():
            with open(disk(at.server), 'wb') as file:
                file.truncate(SIZE)
            self.use(at)

    def use(self, at):
        super().run(at)


class OnRestartedTarget(OnTarget):
    """A second target serves what the first one has written; compares the disk."""

    def use(self, at):
        super().use(at)
        OnTarget(server=self.server, client=self.client.replace(f'{WRITE} ', ''), keeps_serving=True).use(at)
        with open(disk(at.server), 'rb') as file:
            if file.read(BYTES) != bytes([PATTERN]) * BYTES or any(file.read()):
                raise Failure('the disk has other contents')


WRITE = f"-c 'write -P {PATTERN} 0 256k'"
TARGET = f'tgtd -f -C {CONTROL} --iser pool_sz_mb=64'


def initiator(client, **more):
    return OnTarget(server=TARGET, client=client, keeps_serving=True, **more)


ROWS = [
    initiator(f'iscsi-inq -i {NAME}:initiator {URL}'),
    initiator(f'iscsi-readcapacity16 -i {NAME}:initiator {URL}'),
    initiator(f'iscsi-test-cu -i {NAME}:initiator --dataloss -t SCSI.Verify10 {URL}'),
    initiator(f'iscsi-test-cu -i {NAME}:initiator --dataloss -t SCSI.WriteSame10 {URL}'),
    initiator(f'iscsi-perf -i {NAME}:initiator -t 1 {URL}'),
    OnRestartedTarget(server=TARGET, keeps_serving=True, client=(
        f"qemu-io --image-opts {WRITE} -c 'read -P {PATTERN} 0 256k' {IMAGE}")),
    initiator('iscsi-ls iscsi://{}:3260/?iser', refusal=Refusal(
        'iscsi-ls of libiscsi 1.19 crashes in a discovery by iSER', '', -11)),
]
