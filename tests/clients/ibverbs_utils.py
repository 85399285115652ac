# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The examples of libibverbs. With `-c` they compare contents."""
import re

import report
from host import Failure, until
from row import Pair, Refusal, Row

PACKAGES = ['ibverbs-utils', 'ibverbs-providers']
PORT = 18515


def listed(client, _server):
    if not re.search(r'^\s+urxe0\s+[0-9a-f]{16}$', client, re.MULTILINE):
        raise Failure(f'no urxe0: {client}')


def active(client, _server):
    if not re.search(r'hca_id:\s+urxe0\n(.*\n)*\s+state:\s+PORT_ACTIVE', client):
        raise Failure(f'no active port: {client}')


def played(client, server):
    report.check_pingpong(client)
    report.check_pingpong(server)


def pingpong(command):
    return Pair(server=command, client=f'{command} {{}}', port=PORT, check=played)


class Watch(Row):
    """Sees an event of its device, and then is ended."""

    def run(self, at):
        # Without stdbuf its output comes late where it goes to a file.
        watch = at.client.start('stdbuf', '-oL', self.client)
        until(30, lambda: 'async event FD' in watch.output(),
              lambda: f'does not watch: {watch.describe()}')
        with at.event() as event:
            until(30, lambda: event in watch.output(), lambda: f'no {event}: {watch.describe()}')
            watch.kill()


def refused(command, reason, says):
    return Row(command, refusal=Refusal(reason, says))


ROWS = [
    Row('ibv_devices', check=listed),
    Row('ibv_devinfo', check=active),
    Row('ibv_devinfo -v -d urxe0', check=active),
]
ROWS += [pingpong(command) for command in (
    'ibv_rc_pingpong -g {gid}',
    'ibv_rc_pingpong -g {gid} -c',
    'ibv_rc_pingpong -g {gid} -e',
    'ibv_rc_pingpong -g {gid} -N',
    'ibv_rc_pingpong -g {gid} -s 1048576 -n 100',
    'ibv_uc_pingpong -g {gid}',
    'ibv_uc_pingpong -g {gid} -c -e',
    'ibv_ud_pingpong -g {gid} -s 1024',
    'ibv_ud_pingpong -g {gid} -s 1024 -e',
    'ibv_srq_pingpong -g {gid} -c',
    'ibv_srq_pingpong -g {gid} -e',
)]
ROWS += [
    refused('ibv_rc_pingpong -g {gid} -t',
            'librxe has no time stamps of completions',
            "The device isn't completion timestamp capable"),
    refused('ibv_rc_pingpong -g {gid} -o',
            'there is no on-demand paging',
            "The device isn't ODP capable"),
    refused('ibv_rc_pingpong -g {gid} -j',
            'the device has no memory of its own', "Device doesn't support dm allocation"),
    refused('ibv_xsrq_pingpong -g {gid}', 'librxe has no XRC',
            'Open the XRC Domain 95'),
    Watch('ibv_asyncwatch'),
]
