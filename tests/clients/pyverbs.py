# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
`pyverbs_suite.py` runs rdma-core's own Python tests, with both ends in one process. It skips tests for devices of
other vendors, and for features that librxe 44 lacks: XRC, parent domains, device memory, raw packets, re-registration.
`pyverbs_workers.py` exchanges messages with workers of `multiprocessing`, forked and spawned.
Debian has no package of a verbs library for Rust or Go.
"""
import re

from host import Failure
from row import Pair, Row

PACKAGES = ['python3-pyverbs']
PORT = 18516
MIN_TESTS = 95  # of 273; rdma-core skips the others on urxe0
MIN_BY_HCA = 85  # without memory windows and on-demand paging


def check(client, _server):
    found = re.search(r'^(\d+) tests ran', client, re.MULTILINE)
    least = MIN_BY_HCA if 'by an HCA\n' in client else MIN_TESTS
    if not found or int(found[1]) < least:
        raise Failure(f'fewer than {least} tests ran: {client}')


def prints_all(client, _server):
    if re.findall(r'^(\w+): all is as it was sent$', client, re.MULTILINE) != ['fork', 'spawn', 'forkserver']:
        raise Failure(f'not all workers: {client}')


PAIR = '/usr/bin/python3 {programs}/pyverbs_pair.py {gid}'
ROWS = [
    Row('/usr/bin/python3 {programs}/pyverbs_suite.py', check=check),
    Row('/usr/bin/python3 {programs}/pyverbs_workers.py {gid}', check=prints_all),
    Pair(server=PAIR, client=f'{PAIR} {{}}', port=PORT),
]
