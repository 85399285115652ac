# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""`urxe bench`: engine and port in one thread at each end of a cable, without a daemon; kinds of cables."""
import contextlib
import json
import os
import signal
import tempfile
import time

from measure import Idle, Limit, SECONDS, Unavailable, share
from host import Host, Program, succeed, until


class Veth:
    """The ends of a veth cable, by af_packet or af_xdp; cable: what bench.place knows it by."""

    def __init__(self, kind, cable):
        self.kind = kind
        self.cable = cable

    @contextlib.contextmanager
    def ends(self, bench):
        """What stands before a program of each end, and its port."""
        yield [(namespace.prefix(), f'{self.kind}:eth0')
               for namespace in bench.place(self.cable).namespaces]

    def plug(self, bench, end):
        """Once the program of that end runs."""


class Memif:
    """Memory that two processes share."""

    PORT = ('dpdk:net_memif0,role={},socket={}/memif,socket-abstract=no,bsize=8192,'
            'mac=02:00:00:00:00:{:02}')

    @contextlib.contextmanager
    def ends(self, _):
        with tempfile.TemporaryDirectory() as folder:
            yield [([], self.PORT.format(role, folder, end))
                   for end, role in enumerate(('server', 'client'))]

    def plug(self, bench, end):
        """The socket does."""


class Vhost:
    """The memory of a virtual machine, which another daemon plays."""

    @contextlib.contextmanager
    def ends(self, _):
        with tempfile.TemporaryDirectory() as folder:
            yield [([], f'vhost:{folder}/vm'),
                   ([], f'dpdk:net_virtio_user0,path={folder}/vm,mac=02:00:00:00:00:02')]


class Taps:
    """Interfaces that urxe makes, which a bridge of the kernel joins."""

    NAME = 'tap{}'

    @contextlib.contextmanager
    def ends(self, bench):
        prefix = bench.place('bridge').namespace.prefix()
        yield [(prefix, f'tap:{self.NAME.format(end)}') for end in range(2)]

    def plug(self, bench, end):
        name = self.NAME.format(end)
        bench.place('bridge').plug(name)


class Station:
    """A figure of what it prints. Both ends poll: two processors."""

    def __init__(self, cable, figure, options=()):
        self.cable = cable
        self.figure = figure
        self.options = options

    def start(self, bench, end, place, *arguments):
        prefix, port = place
        program = Program([*prefix, 'taskset', '-c', str(bench.cpus[end]),
                           os.path.join(bench.build, 'tools/urxe'), 'bench', '--port', port,
                           *self.options, *arguments], os.environ)
        self.cable.plug(bench, end)
        return program

    def measure(self, bench):
        with self.cable.ends(bench) as (listening, asking):
            listener = self.start(bench, 0, listening, '--listen')
            try:
                until(SECONDS, lambda: listener.output() or not listener.running(),
                      listener.describe)
                client = self.start(bench, 1, asking, '--json')
                if client.wait(SECONDS):
                    raise Unavailable((listener.errors() + client.errors()).strip())
                # It takes its XDP program off the interface when it may.
                listener.kill(signal.SIGTERM)
                succeed(listener, SECONDS)
            finally:
                listener.kill()
        return self.figure(json.loads(client.output()))


class BareFrames(Station, Limit):
    """The latency of a frame as long as a SEND's, without an engine: what the port and the cable take."""

    def __init__(self, cable):
        super().__init__(cable, lambda found: found['frame_latency_s'], ['--bare'])


class IdleByCable:
    """The share of a processor of the first of two urxed, each at an end of a cable of shared memory."""

    def __init__(self, cable):
        self.cable = cable

    def measure(self, bench):
        with self.cable.ends(bench) as ends, contextlib.ExitStack() as stack:
            hosts = [stack.enter_context(Host(bench.build, arguments=['--uplink', port]))
                     for _, port in ends]
            time.sleep(4)  # the two have found each other, and are quiet for long
            return share([hosts[0].daemon_pid()], Idle.SECONDS)
