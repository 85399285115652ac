# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Network namespaces that a veth cable joins, with a link named eth0 each."""
import os
import subprocess

from host import Failure, main, skip, until


def ip(*arguments):
    return subprocess.run(['ip', *arguments], capture_output=True, text=True, check=False)


def must(*arguments):
    result = ip(*arguments)
    if result.returncode:
        raise Failure(f'ip {" ".join(arguments)}: {result.stderr.strip()}')


def inside(name):
    """What stands before a command so that it runs in a namespace."""
    return ['ip', 'netns', 'exec', name]


def make(names, link_local=True, mtu=1500):
    """Two namespaces, 192.0.2.1 and .2; a skipped test where that is refused."""
    a, b = names
    steps = [['netns', 'add', a], ['netns', 'add', b],
             ['link', 'add', 'eth0', 'netns', a, 'mtu', str(mtu), 'type', 'veth',
              'peer', 'name', 'eth0', 'netns', b, 'mtu', str(mtu)]]
    for number, name in enumerate(names, 1):
        if not link_local:
            # They would come some time after the link.
            steps += [['-n', name, 'link', 'set', 'eth0', 'addrgenmode', 'none']]
        steps += [['-n', name, 'addr', 'add', f'192.0.2.{number}/24', 'dev', 'eth0'],
                  ['-n', name, 'link', 'set', 'lo', 'up'],
                  ['-n', name, 'link', 'set', 'eth0', 'up']]
    for step in steps:
        result = ip(*step)
        if result.returncode:
            skip(f'ip {" ".join(step)}: {result.stderr.strip()}')
    # The kernel finds out a little later that there is a carrier.
    for name in names:
        until(10, lambda n=name: 'state UP' in ip('-n', n, 'link', 'show', 'eth0').stdout,
              lambda n=name: f'eth0 does not come up in {n}')


def run(check, names, **options):
    """A test between two such namespaces; all of `names` are gone when it ends."""
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
