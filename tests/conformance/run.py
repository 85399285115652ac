#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Runs the conformance tests of some objects on urxe0, which must have every tested feature. With --nested an HCA executes
its queue pairs: the device of another urxe. Then urxe0 has no features that an HCA may lack. With --packets no request is
executed by a copy from memory to memory. With --maximum the tests make as many objects of a kind as the device can have, and
are skipped where fewer gigabytes of memory are available.
"""
import argparse
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '../harness'))
from host import Host, main, skip  # noqa: E402
from nested import OUTER, Nested  # noqa: E402


# An HCA changes what these tests expect; docs/hca.md has the reasons (What a program can tell).
CHANGED = {
    'command/reregistration_misuse',  # a region that is registered anew has new keys
    'srq/resizing',  # the HCA takes requests, so there is room for more
    'cq_event/unread_at_arming',  # the HCA does not tell which completions are solicited
    'async/overflow',  # nothing polls the HCA before the program does
}
# Each queue takes memory mappings of both urxes, and the kernel limits these for each process.
MANY = '1000'
MAXIMUM = str(1 << 24)


def available_gb():
    with open('/proc/meminfo', encoding='ascii') as file:
        return int(re.search(r'^MemAvailable: +(\d+) kB', file.read(), re.MULTILINE)[1]) >> 20


def unchanged(tests, objects):
    """The tests of these objects that an HCA does not change."""
    listed = subprocess.run([*tests, '-l', *objects], capture_output=True, text=True, check=True).stdout.split()
    return [name for name in listed if name not in CHANGED]


def run():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('build')
    parser.add_argument('--nested', action='store_true')
    parser.add_argument('--packets', action='store_true')
    parser.add_argument('--maximum', type=int, metavar='GB')
    parser.add_argument('objects', nargs='+')
    options = parser.parse_args()
    tests = [os.path.join(options.build, 'tests/conformance/conformance'), '-d', 'urxe0']
    if options.maximum:
        if available_gb() < options.maximum:
            skip(f'less than {options.maximum} GB of memory are available')
        tests += ['-m', MAXIMUM]
    if not options.nested:
        with Host(options.build) as host:
            transport = ['env', 'URXE_TRANSPORT=packet'] if options.packets else []
            print(host.run(*transport, *tests, '-w', *options.objects, seconds=130))
        return
    with Host(options.build, arguments=OUTER) as outer, Nested(options.build, outer) as host:
        host.way = 'hca'
        host.log = 'error'
        output = host.run(*tests, '-m', MANY, *unchanged(tests[:1], options.objects), seconds=130)
        print(output)
        count, skipped = re.search(r'^(\d+) tests, 0 failed, (\d+) skipped$', output, re.MULTILINE).groups()
        if count == skipped:
            skip('the HCA has none of the tested features')


main(run)
