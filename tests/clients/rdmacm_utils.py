# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
The examples of librdmacm, with and without rsockets. With `-V` and `-T v` they compare contents. The test compares
COPY, the file that `rcopy` creates, with its source. The client of `rstream -T a` may end with status 16 (POLLHUP):
it reports a server that has sent everything and closed the connection as an error.
"""
import filecmp
import select

from host import Failure
from row import SECONDS, Connected, Refusal, Row, copy

PACKAGES = ['rdmacm-utils', 'librdmacm1']
SOURCE = '/bin/bash'


class CheckedCopy(Connected):
    """Checks that the server has written a copy of the client's file."""

    def run(self, at):
        super().run(at)
        if not filecmp.cmp(SOURCE, copy(at.server), shallow=False):
            raise Failure('the copy differs')


class MayHangUp(Connected):
    """Accepts POLLHUP as the client's status: the server may close after its last byte."""

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
    # 800 datagrams: on a busy machine the receiver's ring of 960 frames holds all of them meanwhile.
    ('udaddy -c 16 -C 50', 'udaddy -s {} -c 16 -C 50'),
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
    MayHangUp(server='rstream -S 4096 -C 10 -I 10 -T a', client='rstream -s {} -S 4096 -C 10 -I 10 -T a'),
    CheckedCopy(server='rcopy', client=f'rcopy {SOURCE} {{}}:{{copy}}', keeps_serving=True),
    # The server of cmtime never ends: it reads events until that fails. It creates all queue pairs with the
    # attributes that rdma_create_qp filled in for the first one, hence with its CQs, so DESTROY_CQ returns EBUSY.
    Connected(server='cmtime', client='cmtime -s {}', keeps_serving=True),
]
ROWS += [Row(command, refusal=Refusal('librxe has no XRC', 'rdma_create_ep: Operation not supported', 255))
         for command in ('rdma_xserver -c x', 'rdma_xclient -s 127.0.0.1 -c x')]
# ibv_create_ah fails with EINVAL. Then librdmacm removes the completion channel from an epoll set that it was never added
# to, and rconnect leaves the errno of that.
ROWS.append(Row('udpong -s {}', refusal=Refusal(
    'rsocket creates address handles without a GRH, which RoCE requires',
    'rconnect: No such file or directory', 255)))
