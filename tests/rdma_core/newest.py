#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Programs of Debian's newest rdma-core, in a root directory that ./dev makes beside the build directory, run with
this system's urxed and this build's library.
"""
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../harness')]
import rdmacm  # noqa: E402
import report  # noqa: E402
from host import Failure, Host, Pair, main, skip  # noqa: E402

CONFORMANCE = 'tests/conformance/conformance'
MANY = '4096'  # maximum objects of a kind; suite conformance tests the advertised limits
# In a mount namespace of its own, so the mounts end with the program.
ENTER = '''
root=$1 top=$2
shift 2
mkdir -p "$root$top"
mount --make-rprivate /
mount --rbind /dev "$root/dev"
mount --rbind /sys "$root/sys"
mount -t proc proc "$root/proc"
mount --bind "$top" "$root$top"
exec chroot "$root" "$@"
'''
# The test appends a GID index, a port and, for the client, the server's address.
PROGRAMS = [
    ['ibv_rc_pingpong', '-c'],
    ['ibv_rc_pingpong', '-c', '-e'],
    ['ibv_rc_pingpong', '-c', '-N'],
    ['ibv_uc_pingpong', '-c'],
    ['ibv_ud_pingpong', '-c'],
    ['ibv_srq_pingpong', '-c'],
    ['ib_send_bw', '-F', '-n', '1000'],
    ['ib_send_bw', '-F', '-n', '1000', '-e'],
    ['ib_send_bw', '-F', '-n', '1000', '-b', '-q', '8'],
    ['ib_send_bw', '-F', '-n', '1000', '--use-srq'],
    ['ib_send_bw', '-F', '-n', '1000', '-c', 'UC'],
    ['ib_send_bw', '-F', '-n', '1000', '-c', 'UD'],
    ['ib_write_bw', '-F', '-n', '1000', '-I', '64'],
    ['ib_write_bw', '-F', '-n', '1000', '--use_old_post_send'],
    ['ib_write_bw', '-F', '-n', '1000', '--write_with_imm'],
    ['ib_read_bw', '-F', '-n', '1000'],
    ['ib_atomic_bw', '-F', '-n', '1000'],
    ['ib_send_lat', '-F', '-n', '1000'],
    ['ib_write_lat', '-F', '-n', '1000'],
    ['ib_read_lat', '-F', '-n', '1000'],
    ['ib_atomic_lat', '-F', '-n', '1000'],
]
SECONDS = 120


class Newest(Host):
    """A host with programs below `root` and this system's daemon."""

    def __init__(self, build, root):
        self.root = root
        super().__init__(build)

    def command(self, argv):
        inside = ['unshare', '-m', 'sh', '-c', ENTER, 'sh', self.root, self.top, *argv]
        return super().command(inside)

    def close(self):
        os.rmdir(self.root + self.top)


def check_devices(host):
    listing = host.run('ibv_devices')
    if not re.search(r'^\s+urxe0\s+[0-9a-f]{16}$', listing, re.MULTILINE):
        raise Failure(f'ibv_devices does not list urxe0:\n{listing}')
    print(host.run('ibv_devinfo', '-v', '-d', 'urxe0'))


def check_programs(host):
    for argv in PROGRAMS:
        print(' '.join(argv), flush=True)
        report.check(argv, *Pair(host, host, argv).finish(SECONDS))


def check_connections(host):
    for server, client in rdmacm.PROGRAMS:
        print(' '.join(client), flush=True)
        rdmacm.check_pair(host, host, server, client, '127.0.0.1')
    rdmacm.check_group(host, host)
    rdmacm.check_ipv6(host)
    rdmacm.check_nobody_listens(host)


def check_conformance(host, build):
    copy = os.path.join(host.top, 'conformance')
    shutil.copy2(os.path.join(build, CONFORMANCE), copy)
    print(host.run(copy, '-d', 'urxe0', '-a', 'urxe-65', '-w', '-m', MANY, seconds=1800))


def run():
    build, = sys.argv[1:]
    root = build + '-rdma-core/root'
    if os.getuid() != 0:
        skip('only root enters another root directory')
    if not os.path.exists(root):
        skip(f'there is no {root}: ./dev test --suite rdma-core makes it')
    with Newest(build, root) as host:
        check_devices(host)
        check_programs(host)
        check_connections(host)
        check_conformance(host, build)
        host.close()


main(run)
