# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Programs of TCP over rsockets: `LD_PRELOAD=/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so urxe run -- COMMAND` at both
ends. `librspreload.so` of librdmacm 44 has neither `accept4` nor epoll, no sockets with SOCK_CLOEXEC, and few socket options;
that decides which programs work, with any device. `redis-server` and `nginx` need epoll, `iperf3` and `qperf` need options of
sockets, `sshd` and Python have sockets with SOCK_CLOEXEC or FD_CLOEXEC. Such a program fails, transfers nothing, or uses the
kernel's TCP: `urxe show id` lists the listeners and connections of rsockets. `ssh` alone, without sshd over rsockets, has no peer.
curl works with a server that listens by rsockets.
nginx with its usual master process accepts connections and never answers. Its worker ends ("epoll_ctl(1, 3) failed (1:
Operation not permitted)"). The master keeps the listening rsocket, and a thread of librdmacm accepts connections there. So
curl sends its request and waits for ever. curl's main thread stays in `rpoll` of librdmacm, which calls `sched_yield` in a
loop. So `curl -m 6` does not end either.
`RDMAV_FORK_SAFE=1` makes rsockets connect by the kernel's TCP first, which does not know the addresses of a `urxed` without uplink.

The last table has the rates of a run of the tests, over rsockets and then over the kernel's TCP by the same commands without
`urxe run`. Between two hosts TCP has the veth cable's segmentation offloads.
"""
import glob
import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Callable

from host import Failure, succeed, until, wait_listening
from row import SECONDS, Connected, Refusal, Row, words

PACKAGES = ['librdmacm1', 'netcat-traditional', 'netcat-openbsd', 'iperf', 'iperf3', 'curl', 'redis-server', 'nginx', 'openssh-server']
LIBRARY = '/usr/lib/*/rsocket/librspreload.so'
TEXT = 'sent by rsockets'
PAGE = 256 << 20  # bytes that curl reads
# Bytes per second by the client's command, for the page.
FIGURES = {}


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


@dataclass(frozen=True)
class Measured(Pair):
    """A pair whose client prints a rate. It runs once more over the kernel's TCP."""
    rate: Callable = None  # of the client's output, in bytes per second
    tcp_port: int = 0  # where the server listens

    def judge(self, client, server=None):
        super().judge(client, server)
        FIGURES[self.client] = {'rsockets': self.rate(client.output())}

    def run(self, at):
        super().run(at)
        server = at.server.spawn(words(self.server, at, at.server))
        wait_listening(server, self.tcp_port)
        client = at.client.spawn(words(self.client, at, at.client))
        try:
            succeed(client, SECONDS)
            FIGURES[self.client]['TCP'] = self.rate(client.output())
        finally:
            server.kill()
            client.kill()


class Endless(Pair):
    """The client prints the message of the refusal, and does not end."""

    def judge(self, client, server=None):
        until(SECONDS, lambda: self.refusal.message in client.errors() or not client.running(), client.describe)
        if self.refusal.message not in client.errors():
            raise Failure('another message than the expected refusal')


class Alone(Row):
    def run(self, at):
        with preloaded(at):
            super().run(at)


def check_text(_client, server):
    if server != TEXT + '\n':
        raise Failure(f'the server has received {server!r}')


def rate_of_iperf(output):
    found = re.search(r'\s([\d.]+) ([MG])bits/sec', output)
    if not found or not float(found[1]):
        raise Failure(f'no rate: {output}')
    return float(found[1]) * {'M': 1e6, 'G': 1e9}[found[2]] / 8


def rate_of_curl(output):
    size, rate = map(int, output.split())
    if size != PAGE:
        raise Failure(f'{size} bytes')
    return rate


ROWS = [
    Pair(server='nc.traditional -l -p 7001 -q 1', client=f'sh -c "echo {TEXT} | nc.traditional -q 1 {{}} 7001"',
         check=check_text),
    Measured(server='iperf -s', client='iperf -c {} -t 1', keeps_serving=True, rate=rate_of_iperf, tcp_port=5001),
    Measured(server=f"sh -c '(printf \"HTTP/1.0 200 OK\\\\r\\\\nContent-Length: {PAGE}\\\\r\\\\n\\\\r\\\\n\"; "
                    f"head -c {PAGE} /dev/zero) | nc.traditional -l -p 7002 -q 1'",
             client="curl -s -o /dev/null -w '%{{size_download}} %{{speed_download}}' http://{}:7002/", rate=rate_of_curl, tcp_port=7002),
    Endless(server='iperf3 -s -p 7003', client='iperf3 -c {} -p 7003 -t 1', refusal=Refusal(
        'rsockets lacks an option of TCP sockets; iperf3 says so, and does not end', 'iperf3: getsockopt - Operation not supported')),
    Alone("sh -c 'mkdir -p /run/sshd && exec /usr/sbin/sshd -D -e -o LogLevel=VERBOSE -p 7004'", refusal=Refusal(
        'rsockets cannot set FD_CLOEXEC, which sshd wants', 'socket: CLOEXEC: Operation not supported\r?\nCannot bind', status=255)),
    Alone('nc.openbsd -l 7001', refusal=Refusal('rsockets has no SO_REUSEPORT',
                                                "Couldn't set SO_REUSEPORT: Operation not supported")),
    Alone('nginx -c {programs}/nginx.conf', refusal=Refusal('rsockets has no epoll, and Debian builds nginx without poll',
                                                            r'epoll_ctl\(1, \d+\) failed', status=2)),
    Alone("redis-server --port 7101 --save ''", refusal=Refusal(
        'rsockets has no epoll; redis-server ends with a crash report', 'Unrecoverable error creating TCP socket accept handler', status=-11)),
]
