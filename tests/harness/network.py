# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Network namespaces joined by a veth cable; each end is named eth0."""
import os
import re
import socket
import subprocess

from host import Failure, main, skip, until


# What ip, tc and nft say of a kernel that lacks a device type or a queueing discipline, or forbids it.
LACKS = re.compile(r'not supported|[Uu]nknown device type|qdisc (kind )?is unknown|not permitted')

AF_XDP = 44  # missing in the socket module


def require_af_xdp():
    """Skips the test if the kernel has no AF_XDP."""
    try:
        socket.socket(AF_XDP, socket.SOCK_RAW).close()
    except OSError as error:
        skip(f'no AF_XDP socket: {error.strerror}')


def judge(command, result):
    """Raises Failure if a command has failed. Skips the test if the kernel lacks what the command needs."""
    if not result.returncode:
        return
    complaint = f'{command}: status {result.returncode}, {result.stderr.strip()}'
    if LACKS.search(result.stderr):
        skip(complaint)
    raise Failure(complaint)


def ip(*arguments):
    return subprocess.run(['ip', *arguments], capture_output=True, text=True, check=False)


def must(*arguments):
    result = ip(*arguments)
    if result.returncode:
        raise Failure(f'ip {" ".join(arguments)}: {result.stderr.strip()}')


def inside(name):
    """The prefix of a command line that runs in a namespace."""
    return ['ip', 'netns', 'exec', name]


def make(names, link_local=True, mtu=1500):
    """Creates two namespaces, 192.0.2.1 and .2. Skips the test without permission."""
    a, b = names
    steps = [['netns', 'add', a], ['netns', 'add', b],
             ['link', 'add', 'eth0', 'netns', a, 'mtu', str(mtu), 'type', 'veth',
              'peer', 'name', 'eth0', 'netns', b, 'mtu', str(mtu)]]
    for number, name in enumerate(names, 1):
        if not link_local:
            # Link-local addresses appear some time after the link is up.
            steps += [['-n', name, 'link', 'set', 'eth0', 'addrgenmode', 'none']]
        steps += [['-n', name, 'addr', 'add', f'192.0.2.{number}/24', 'dev', 'eth0'],
                  ['-n', name, 'link', 'set', 'lo', 'up'],
                  ['-n', name, 'link', 'set', 'eth0', 'up']]
    for step in steps:
        judge(f'ip {" ".join(step)}', ip(*step))
    # The kernel reports the carrier a little later.
    for name in names:
        until(10, lambda n=name: 'state UP' in ip('-n', n, 'link', 'show', 'eth0').stdout,
              lambda n=name: f'eth0 does not come up in {n}')


def run(check, names, **options):
    """Runs a test between two such namespaces, and removes all of `names` at its end."""
    def both():
        try:
            make(names[:2], **options)
            check()
        finally:
            for name in names:
                ip('netns', 'delete', name)

    if os.getuid():
        skip('namespaces and packet sockets need root')
    main(both)
