# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The examples of libibverbs. With `-c` they compare the contents of messages."""
import re

import report
from host import Failure, until
from row import Pair, Refusal, Row

PACKAGES = ['ibverbs-utils', 'ibverbs-providers']
PORT = 18515


def check_listed(client, _server):
    if not re.search(r'^\s+urxe0\s+[0-9a-f]{16}$', client, re.MULTILINE):
        raise Failure(f'no urxe0: {client}')


def check_active(client, _server):
    if not re.search(r'hca_id:\s+urxe0\n(.*\n)*\s+state:\s+PORT_ACTIVE', client):
        raise Failure(f'no active port: {client}')


def check_both_sides(client, server):
    report.check_pingpong(client)
    report.check_pingpong(server)


def pingpong(command):
    return Pair(server=command, client=f'{command} {{}}', port=PORT, check=check_both_sides)


class Watch(Row):
    """A program that reports asynchronous events of its device until the test kills it."""

    def run(self, at):
        # ibv_asyncwatch writes to a file here, which libc would buffer until the program ends.
        watch = at.client.start('stdbuf', '-oL', self.client)
        until(30, lambda: 'async event FD' in watch.output(),
              lambda: f'ibv_asyncwatch has not started: {watch.describe()}')
        with at.event() as event:
            until(30, lambda: event in watch.output(), lambda: f'no {event}: {watch.describe()}')
            watch.kill()


def refused(command, reason, says):
    return Row(command, refusal=Refusal(reason, says))


ROWS = [
    Row('ibv_devices', check=check_listed),
    Row('ibv_devinfo', check=check_active),
    Row('ibv_devinfo -v -d urxe0', check=check_active),
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
    'ibv_rc_pingpong -g {gid} -o -c',
    'ibv_rc_pingpong -g {gid} -O -c',
)]
ROWS += [
    refused('ibv_rc_pingpong -g {gid} -t',
            'librxe has no completion time stamps',
            "The device isn't completion timestamp capable"),
    refused('ibv_rc_pingpong -g {gid} -j',
            'urxe0 has no device memory', "Device doesn't support dm allocation"),
    refused('ibv_xsrq_pingpong -g {gid}', 'librxe has no XRC',
            'Open the XRC Domain 95'),
    Watch('ibv_asyncwatch'),
]
