# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Ceph's messenger over RDMA: a monitor and an OSD on the server, `rados` and `ceph` on the client. `CEPH_CONF` names this file
of all three, here without its paths:

    [global]
    fsid = 5d4b2f0e-6f5c-4f0e-9a57-0b1a4c6d7e8f
    mon host = v2:192.0.2.1:3300
    auth cluster required = none
    auth service required = none
    auth client required = none
    ms type = async+rdma
    ms async rdma device name = urxe0
    ms async rdma receive queue len = 512
    ms async rdma receive buffers = 1024
    ms async rdma polling us = 0
    osd pool default size = 1
    osd crush chooseleaf type = 0
    osd objectstore = memstore
    memstore device bytes = 2147483648
    mon allow pool size one = true

- Without the two lines about receives Ceph registers 4 GiB in each process.
- With `polling us = 0` Ceph's polling thread sleeps as soon as no message comes. By default it spins for 1 ms.
- Ceph warns about `ulimit -l`. urxe pins nothing, so any limit is enough.
- Beside the same cluster over TCP, on one host with two processors, one round: operations of 4 KiB reach 0.55 to 0.76 of
  TCP's rate, writes of 4 MiB 0.92, reads of 4 MiB 0.66.

`rados bench ... seq` compares the contents of all objects that `rados bench ... write` has written.
"""
import os
import re
import subprocess
import uuid
from dataclasses import dataclass

from ethernet import IPV4
from host import BUSY, Failure, succeed, until
from row import SECONDS, Pair

PACKAGES = ['ceph-mon', 'ceph-osd', 'ceph-common']
MON_PORT = 3300


def configuration(folder, fsid, address):
    """The lines of the docstring with this place's values, and the paths that keep the cluster in `folder`."""
    start = __doc__.index('[global]')
    lines = [line.strip() for line in __doc__[start:__doc__.index('\n- Without')].splitlines() if line.strip()]
    text = '\n'.join(lines)
    text = re.sub(r'^fsid = .*', f'fsid = {fsid}', text, flags=re.MULTILINE)
    text = text.replace(IPV4.format(1), address)
    return text + f'''
log file = {folder}/$name.log
admin socket = {folder}/$name.asok
pid file = {folder}/$name.pid
run dir = {folder}
mon data = {folder}/mon
osd data = {folder}/osd
'''


@dataclass(frozen=True)
class OnCluster(Pair):
    """The server is a monitor; the OSD is beside it. `first`: commands of the client before the row's own."""

    first: tuple = ()

    def administer(self, host, *words):
        """A command under `urxe run`, which must succeed. Returns its output."""
        program = host.start(*words)
        try:
            succeed(program, SECONDS)
            return program.output()
        except Failure as failure:
            raise Failure(f'{failure}: {program.describe()}') from None
        finally:
            program.kill()

    def prepare(self, at):
        """Makes the directories of an empty cluster."""
        folder, fsid = os.path.join(at.server.top, f'ceph-{uuid.uuid4()}'), str(uuid.uuid4())
        for name in ('mon', 'osd'):
            os.makedirs(os.path.join(folder, name))
        path = os.path.join(folder, 'ceph.conf')
        with open(path, 'w', encoding='ascii') as file:
            file.write(configuration(folder, fsid, at.address))
        for host in (at.server, at.client):
            host.environment['CEPH_CONF'] = path
        monmap = os.path.join(folder, 'monmap')
        for words in (['monmaptool', '--create', '--addv', 'a', f'[v2:{at.address}:{MON_PORT}]', '--fsid', fsid, monmap],
                      ['ceph-mon', '--mkfs', '-i', 'a', '--monmap', monmap]):
            subprocess.run(words, env=os.environ | at.server.environment, check=True, capture_output=True,
                           timeout=60 * BUSY)

    def start_osd(self, at):
        number = str(uuid.uuid4())
        if self.administer(at.server, 'ceph', 'osd', 'new', number, '0').strip() != '0':
            raise Failure('the OSD has another number than 0')
        self.administer(at.server, 'ceph-osd', '-i', '0', '--mkfs', '--osd-uuid', number)
        self.administer(at.server, 'ceph', 'osd', 'crush', 'add', 'osd.0', '1.0', 'root=default', 'host=here')
        osd = at.server.start('ceph-osd', '-i', '0', '-f')
        try:
            until(60, lambda: '1 up' in self.administer(at.server, 'ceph', 'osd', 'stat'), lambda: osd.describe())
            self.administer(at.server, 'ceph', 'osd', 'pool', 'create', 'data', '8', '8')
        except BaseException:
            osd.kill()
            raise
        return osd

    def run(self, at):
        self.prepare(at)
        monitor = at.server.start(*self.server.split())
        osd = None
        try:
            osd = self.start_osd(at)
            for command in self.first:
                self.administer(at.client, *command.split())
            client = self.start(at.client, self.argv(at))
            try:
                self.judge(client)
            finally:
                client.kill()
        except Failure as failure:
            raise Failure(f'{failure}\nthe monitor: {monitor.describe()}\n'
                          f'the OSD: {osd.describe() if osd else ""}') from None
        finally:
            monitor.kill()
            if osd:
                osd.kill()


def check_status(client, _server):
    if 'osd: 1 osds: 1 up' not in client:
        raise Failure(f'no OSD: {client}')


def check_bench(client, _server):
    found = re.search(r'^Average IOPS: +([0-9]+)', client, re.MULTILINE)
    if not found or not int(found[1]):
        raise Failure(f'no operations: {client}')


def row(client, check, *first):
    return OnCluster(server='ceph-mon -i a -f', client=client, check=check, first=first, keeps_serving=True)


def bench(size, at_once):
    write = f'rados -p data bench 3 write -b {size} -t {at_once} --no-cleanup'
    return [row(write, check_bench), row(f'rados -p data bench 3 seq -t {at_once}', check_bench, write)]


ROWS = [row('ceph -s', check_status), *bench(4096, 16), *bench(4194304, 4)]
