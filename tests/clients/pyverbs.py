# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
The first program runs rdma-core's own tests, both ends in one process. What is skipped there is of other vendors'
devices or of what librxe 44 has not: XRC, parent domains, ODP, device memory, raw packets, re-registration.
"""
import re

from host import Failure
from row import Pair, Row

PACKAGES = ['python3-pyverbs']
PORT = 18516
RAN = 95  # of 273


def check(client, _server):
    found = re.search(r'^(\d+) tests ran', client, re.MULTILINE)
    if not found or int(found[1]) < RAN:
        raise Failure(f'not {RAN} tests: {client}')


PAIR = '/usr/bin/python3 {programs}/pyverbs_pair.py {gid}'
ROWS = [
    Row('/usr/bin/python3 {programs}/pyverbs_suite.py', check=check),
    Pair(server=PAIR, client=f'{PAIR} {{}}', port=PORT),
]
