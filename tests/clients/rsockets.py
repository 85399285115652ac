# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Programs of TCP over rsockets: `LD_PRELOAD=/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so urxe run -- COMMAND` at both
ends. `librspreload.so` of librdmacm 44 has neither `accept4` nor epoll, no sockets with SOCK_CLOEXEC, and few socket options;
that decides which programs work, with any device. `redis-server` needs epoll, `iperf3` and `qperf` need options of sockets,
and Python's sockets have SOCK_CLOEXEC. Such a program fails, or uses the kernel's TCP: `urxe show id` lists the
listeners and connections of rsockets.
`RDMAV_FORK_SAFE=1` makes rsockets connect by the kernel's TCP first, which does not know the addresses of a `urxed` without uplink.
"""
import glob
import re
from contextlib import contextmanager

from host import Failure
from row import Connected, Refusal, Row

PACKAGES = ['librdmacm1', 'netcat-traditional', 'netcat-openbsd', 'iperf']
LIBRARY = '/usr/lib/*/rsocket/librspreload.so'
TEXT = 'sent by rsockets'


@contextmanager
def preloaded(at):
    """Programs of both hosts get librspreload.so, behind liburxe.so."""
    library, = glob.glob(LIBRARY)
    for host in (at.server, at.client):
        host.environment['LD_PRELOAD'] = library
    yield
    for host in (at.server, at.client):
        host.environment.pop('LD_PRELOAD', None)


class Pair(Connected):
    def run(self, at):
        with preloaded(at):
            super().run(at)


class Alone(Row):
    def run(self, at):
        with preloaded(at):
            super().run(at)


def check_text(_client, server):
    if server != TEXT + '\n':
        raise Failure(f'the server has received {server!r}')


def check_rate(client, _server):
    if not re.search(r'\s[1-9][\d.]* [MG]bits/sec', client):
        raise Failure(f'no rate: {client}')


ROWS = [
    Pair(server='nc.traditional -l -p 7001 -q 1', client=f'sh -c "echo {TEXT} | nc.traditional -q 1 {{}} 7001"',
         check=check_text),
    Pair(server='iperf -s', client='iperf -c {} -t 1', check=check_rate, keeps_serving=True),
    Alone('nc.openbsd -l 7001', refusal=Refusal('rsockets has no SO_REUSEPORT',
                                                "Couldn't set SO_REUSEPORT: Operation not supported")),
]
