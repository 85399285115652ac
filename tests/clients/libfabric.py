# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
All endpoints are of the domain `urxe0`, where datagrams have `urxe0-dgram`. With `-c` every byte is compared.
`verbs` alone makes RDM endpoints by one of the layers `ofi_rxm` and `ofi_rxd`.
"""
import re

from host import Failure
from row import Pair, Row

PACKAGES = ['libfabric-bin']
PORT = 47592


def lists(client, _server):
    found = set(re.findall(r'domain: (urxe0\S*)\n.*\n +type: FI_EP_(\w+)\n', client))
    wanted = {('urxe0', 'MSG'), ('urxe0', 'RDM'), ('urxe0-dgram', 'DGRAM'), ('urxe0-dgram', 'RDM')}
    if found != wanted:
        raise Failure(f'{found}: {client}')


def up_to(largest):
    def check(client, _server):
        if not re.search(rf'^{largest} +10 ', client, re.MULTILINE):
            raise Failure(f'not all sizes: {client}')
    return check


def pingpong(provider, endpoint, options='-c'):
    domain = 'urxe0-dgram' if 'rxd' in provider or endpoint == 'dgram' else 'urxe0'
    command = f"fi_pingpong -p '{provider}' -d {domain} -e {endpoint} {options}"
    # A datagram is no longer than the MTU, which is 1024 in one of the places.
    return Pair(server=command, client=f'{command} {{}}', check=up_to('1k' if endpoint == 'dgram' else '1m'),
                port=PORT)


ROWS = [
    Row("fi_info", check=lists),
    pingpong('verbs', 'msg'),
    pingpong('verbs', 'dgram'),
    pingpong('verbs', 'rdm'),
    pingpong('verbs', 'rdm', '-c -m tagged'),
    pingpong('verbs;ofi_rxm', 'rdm'),
    pingpong('verbs;ofi_rxm', 'rdm', '-c -m tagged'),
    pingpong('verbs;ofi_rxd', 'rdm'),
]
