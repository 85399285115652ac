# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The machine's huge pages of 2 MiB, for tests that need some or change their number."""
import contextlib
import fcntl
import os

POOL = '/sys/kernel/mm/hugepages/hugepages-2048kB/'


def read(name):
    with open(POOL + name, encoding='ascii') as file:
        return int(file.read())


def resize(pages):
    with open(POOL + 'nr_hugepages', 'w', encoding='ascii') as file:
        file.write(str(pages))


def size():
    """The number of huge pages, without surplus pages, which disappear when they are freed."""
    return read('nr_hugepages') - read('surplus_hugepages')


@contextlib.contextmanager
def restored():
    """Restores the number of huge pages after a block; a lock admits one test at a time."""
    with open(POOL + 'nr_hugepages', encoding='ascii') as pool:
        fcntl.flock(pool, fcntl.LOCK_EX)
        before = size()
        try:
            yield
        finally:
            resize(before)


@contextlib.contextmanager
def more(pages):
    """Adds huge pages for a block, as many as the kernel gives; none where this process may not change the number."""
    if not os.access(POOL + 'nr_hugepages', os.W_OK):
        yield
        return
    with restored():
        resize(size() + pages)
        yield
