# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A target of iSCSI: tgtd of Debian, which serves a file as a disk over iSER or TCP."""
import fcntl
import os
import re
import subprocess
from contextlib import contextmanager

from host import BUSY, Failure, until

NAME = 'iqn.2026-01.example'
CONTROL = '5'  # the number of tgtd's control socket
PAGES = 80  # huge pages of 2 MiB, for tgtd's pool
POOL = '--iser pool_sz_mb=64'
DISK = 64 << 20
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
    """Yields whether the kernel has given the pages of tgtd's pool."""
    added = add_pages(PAGES)
    try:
        yield free_pages() >= PAGES
    finally:
        add_pages(-added)


def administer(host, lld, *words):
    return subprocess.run([*host.prefix, 'tgtadm', '-C', CONTROL, '--lld', lld, *words], capture_output=True,
                          text=True, timeout=20 * BUSY, check=False)


def must(host, lld, *words):
    result = administer(host, lld, *words)
    if result.returncode:
        raise Failure(f'tgtadm {" ".join(words)}: {result.stdout}{result.stderr}')


def start_target(host, start, lld, command):
    """Starts the target, and waits until it obeys tgtadm."""
    for name in (f'/var/run/tgtd/socket.{CONTROL}', f'/var/run/tgtd/socket.{CONTROL}.lock'):
        if os.path.exists(name):  # of a killed target
            os.remove(name)
    server = start(*command)
    until(20, lambda: not administer(host, lld, '--mode', 'sys', '--op', 'show').returncode or not server.running(),
          lambda: f'tgtd does not obey: {server.describe()}')
    return server


def serve_disk(host, start, command, path, lld='iser'):
    """Starts tgtd by `start`, with a target whose disk is the file. Any initiator address and the tests' name may use it."""
    server = start_target(host, start, lld, command)
    target = ['--mode', 'target', '--tid', '1']
    try:
        must(host, lld, *target, '--op', 'new', '-T', f'{NAME}:disk')
        must(host, lld, '--mode', 'logicalunit', '--tid', '1', '--op', 'new', '--lun', '1', '-b', path)
        must(host, lld, *target, '--op', 'bind', '-I', 'ALL')
        must(host, lld, *target, '--op', 'bind', '-Q', f'{NAME}:initiator')
    except BaseException:
        server.kill()
        raise
    return server
