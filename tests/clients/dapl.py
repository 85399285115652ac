# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
uDAPL, by its provider for rdma_cm. `DAT_OVERRIDE` names a file with a line for each host, here with the host's own address:

    urxe u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "192.0.2.1 0" ""

`dapltest -V` compares the contents of all messages. `dtest`, `dtestx` and `dtestsrq` work as well, but their servers send
the client their address before they listen for it. A client that is faster than its server is rejected.
"""
import os
from dataclasses import dataclass

from ethernet import IPV4
from host import Failure
from row import Connected

PACKAGES = ['dapl2-utils', 'libdapl2']
PROVIDER = 'urxe u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "{} 0" ""\n'


def check(client, _server):
    if 'End of Work -- Client Exiting' not in client:
        raise Failure(f'the test has no end: {client}')


@dataclass(frozen=True)
class Named(Connected):
    """Each host's own address is in its file of providers."""

    def run(self, at):
        for host in (at.server, at.client):
            own = at.address if host is at.server else IPV4.format(2)
            host.environment['DAT_OVERRIDE'] = path = os.path.join(host.top, 'dat.conf')
            with open(path, 'w', encoding='ascii') as file:
                file.write(PROVIDER.format(own))
        super().run(at)


def dapltest(options):
    test, options = options.split(' ', 1)
    return Named(server='dapltest -T S -D urxe', client=f'dapltest -T {test} -D urxe -s {{}} {options}', check=check,
                 keeps_serving=True)


ROWS = [dapltest(options) for options in (
    'T -i 1000 -t 1 -w 1 client SR 256 1 server SR 256 1',
    'T -i 200 -t 4 -w 4 client SR 1024 3 server SR 1536 2 client RW 4096 2 server RR 4096 2',
    'T -i 100 -t 1 -w 2 -V -P client SR 8192 4 server SR 8192 4 client RR 65536 1',
    'P -i 1000 -p 16 -m p RW 65536 4',
)]
