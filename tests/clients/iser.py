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
- libiscsi 1.19 does not initialise its list of send descriptors. So an initiator may crash. It does not with
  `MALLOC_PERTURB_=255`, by which malloc of glibc clears memory; with other values each one crashes.

The tests then kill the target, start it again, let `qemu-io` read in a new session, and compare DISK with the pattern.
A session does not survive the end of its target. `iscsi_reconnect` (lib/connect.c of libiscsi 1.19) makes a new context, whose
transport is TCP, and does not call `iscsi_init_transport` for iSER. So QEMU connects again by TCP, for ever
(`read from socket failed, errno:107`). `iscsi-perf` waits for ever: `iser_handle_wc` (lib/iser.c) ignores flushed requests,
and the program does not look at events of rdma_cm.
"""
import os

from host import Failure, skip, until
from iscsi_target import CONTROL, DISK, NAME, POOL, reserved_pages, serve_disk
from row import SECONDS, Pair, Refusal

PACKAGES = ['tgt', 'libiscsi-bin', 'qemu-utils', 'qemu-block-extra']
PATTERN = 0xa5
BYTES = 256 << 10  # the most that libiscsi transfers at once
URL = f'iscsi://{{}}:3260/{NAME}:disk/1?iser'
IMAGE = (f'driver=iscsi,transport=iser,portal={{}}:3260,target={NAME}:disk,lun=1,'
         f'initiator-name={NAME}:initiator')


def disk(host):
    return os.path.join(host.top, 'disk')


class OnTarget(Pair):
    """The server is the target, with its disk."""

    def start_server(self, at):
        return serve_disk(at.server, at.server.start, self.server.split(), disk(at.server))

    def run(self, at):
        for host in (at.server, at.client):
            # malloc then clears memory. libiscsi 1.19 takes the content of its fresh memory for a pointer.
            host.environment['MALLOC_PERTURB_'] = '255'
        with reserved_pages() as given:
            if not given:
                skip('the kernel gives no huge pages')
            with open(disk(at.server), 'wb') as file:
                file.truncate(DISK)
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


class AcrossRestart(OnTarget):
    """The target is killed and started again during a session. The initiator does not end by itself."""

    def use(self, at):
        server = self.start_server(at)
        client = self.start(at.client, self.argv(at))

        def await_text(expected, text):
            until(SECONDS, lambda: expected in text() or not client.running(), client.describe)
            if expected not in text():
                raise Failure(f'the initiator has not said {expected!r}: {client.describe()}')
        try:
            await_text('wrote ', client.output)
            server.kill()
            server = self.start_server(at)
            await_text(self.refusal.message, client.errors)
        finally:
            server.kill()
            client.kill()


WRITE = f"-c 'write -P {PATTERN} 0 256k'"
TARGET = f'tgtd -f -C {CONTROL} {POOL}'


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
    AcrossRestart(server=TARGET, keeps_serving=True, client=(
        f"env LIBISCSI_DEBUG=1 stdbuf -o0 qemu-io --image-opts {WRITE} -c 'sleep 60000' -c 'read -P {PATTERN} 0 256k' {IMAGE}"),
                  refusal=Refusal('a session does not survive the end of its target: libiscsi 1.19 connects again by TCP',
                                  'read from socket failed, errno:107')),
    initiator('iscsi-ls iscsi://{}:3260/?iser', refusal=Refusal(
        'iscsi-ls of libiscsi 1.19 crashes in a discovery by iSER', '', -11)),
]
