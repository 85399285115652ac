# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
The examples of librdmacm, with those of its sockets. With `-V` and `-T v` they compare contents; COPY,
a new file, has to be what it is a copy of. The client of `rstream -T a` takes a server that has sent all and
gone for an error, where it looks late, and ends with the status 16, which is POLLHUP.
"""
import filecmp
import select

from host import Failure
from row import SECONDS, Connected, Refusal, Row, copy

PACKAGES = ['rdmacm-utils', 'librdmacm1']
SOURCE = '/bin/bash'


class Copied(Connected):
    """The server writes the file."""

    def run(self, at):
        super().run(at)
        if not filecmp.cmp(SOURCE, copy(at.server), shallow=False):
            raise Failure('the copy differs')


class Polled(Connected):
    """Returns what poll says, which may be that the server has gone when all had been sent."""

    def judge(self, client, server=None):
        if client.wait(SECONDS) == select.POLLHUP:
            self.end(server)
        else:
            super().judge(client, server)


ROWS = [Connected(server=server, client=client) for server, client in (
    ('rping -s', 'rping -c -a {} -C 10 -V'),
    ('rping -s -C 100 -S 65535 -V', 'rping -c -a {} -C 100 -S 65535 -V'),
    ('ucmatose', 'ucmatose -s {}'),
    ('ucmatose -c 32 -C 100 -S 4096', 'ucmatose -s {} -c 32 -C 100 -S 4096'),
    ('ucmatose -m', 'ucmatose -s {} -m'),
    ('udaddy', 'udaddy -s {}'),
    ('udaddy -c 16 -C 100', 'udaddy -s {} -c 16 -C 100'),
    ('rdma_server', 'rdma_client -s {}'),
    ('rdma_xserver', 'rdma_xclient -s {}'),
    ('rstream -S 4096 -C 100 -I 10', 'rstream -s {} -S 4096 -C 100 -I 10'),
    ('rstream -S 65536 -C 10 -I 10 -T v', 'rstream -s {} -S 65536 -C 10 -I 10 -T v'),
    ('rstream -S 4096 -C 10 -I 10 -T b', 'rstream -s {} -S 4096 -C 10 -I 10 -T b'),
    ('rstream -S 4096 -C 10 -I 10 -T n', 'rstream -s {} -S 4096 -C 10 -I 10 -T n'),
    ('riostream -S 4096 -C 10 -I 10', 'riostream -s {} -S 4096 -C 10 -I 10'),
    ('riostream -S 4096 -C 10 -I 10 -T v', 'riostream -s {} -S 4096 -C 10 -I 10 -T v'),
)]
ROWS += [
    Connected(server='mckey -m 239.1.2.3', client='mckey -m 239.1.2.3 -s', sign='ATTACH_MCAST: ok'),
    Polled(server='rstream -S 4096 -C 10 -I 10 -T a', client='rstream -s {} -S 4096 -C 10 -I 10 -T a'),
    Copied(server='rcopy', client=f'rcopy {SOURCE} {{}}:{{copy}}', serves_on=True),
    # Its server reads events until that fails, so for ever. It makes all its queue pairs with the attributes
    # that rdma_create_qp filled in for the first, so with the CQs of the first's ID: DESTROY_CQ is EBUSY.
    Connected(server='cmtime', client='cmtime -s {}', serves_on=True),
]
ROWS += [Row(command, refusal=Refusal('librxe has no XRC', 'rdma_create_ep: Operation not supported', 255))
         for command in ('rdma_xserver -c x', 'rdma_xclient -s 127.0.0.1 -c x')]
ROWS.append(Row('udpong -s {}', refusal=Refusal(
    'rsocket makes its address handles without a GRH, which RoCE has to have',
    'rconnect: Resource temporarily unavailable', 255)))
