# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Endpoints belong to the domain `urxe0`; datagram endpoints belong to `urxe0-dgram`. With `-c` every byte is compared.
Without a layer, `-p verbs` lets libfabric choose `ofi_rxm` or `ofi_rxd` for RDM endpoints.
Debian has no package of fabtests; a row of Open MPI uses RDM endpoints with four ranks.
"""
import re

from host import Failure
from row import Pair, Row

PACKAGES = ['libfabric-bin']
PORT = 47592


def check_domains(client, _server):
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
    # A datagram cannot exceed the path MTU, which is 1024 between two hosts.
    return Pair(server=command, client=f'{command} {{}}', check=up_to('1k' if endpoint == 'dgram' else '1m'),
                port=PORT)


ROWS = [
    Row("fi_info", check=check_domains),
    pingpong('verbs', 'msg'),
    pingpong('verbs', 'dgram'),
    pingpong('verbs', 'rdm'),
    pingpong('verbs', 'rdm', '-c -m tagged'),
    pingpong('verbs;ofi_rxm', 'rdm'),
    pingpong('verbs;ofi_rxm', 'rdm', '-c -m tagged'),
    pingpong('verbs;ofi_rxd', 'rdm'),
]
