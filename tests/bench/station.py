# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Measures of `urxe bench`: engine and port in one thread at each end of a cable, without a daemon."""
import contextlib
import json
import os
import signal
import tempfile
import time

from measure import Idle, Limit, SECONDS, Unavailable, share
from host import Host, Program, succeed, until


class Veth:
    """The ends of a veth cable, by af_packet or af_xdp; cable: its name for bench.place."""

    def __init__(self, kind, cable):
        self.kind = kind
        self.cable = cable

    @contextlib.contextmanager
    def ends(self, bench):
        """The command line prefix and the port of each end."""
        yield [(namespace.prefix(), f'{self.kind}:eth0')
               for namespace in bench.place(self.cable).namespaces]

    def plug(self, bench, end):
        """Connects an end after its program has started."""


class Memif:
    """A memif port in memory that two processes share."""

    PORT = ('dpdk:net_memif0,role={},socket={}/memif,socket-abstract=no,bsize=8192,'
            'mac=02:00:00:00:00:{:02}')

    @contextlib.contextmanager
    def ends(self, _):
        with tempfile.TemporaryDirectory() as folder:
            yield [([], self.PORT.format(role, folder, end))
                   for end, role in enumerate(('server', 'client'))]

    def plug(self, bench, end):
        """Does nothing: the ends connect by their socket."""


class Vhost:
    """A vhost port; another daemon plays the virtual machine."""

    @contextlib.contextmanager
    def ends(self, _):
        with tempfile.TemporaryDirectory() as folder:
            yield [([], f'vhost:{folder}/vm'),
                   ([], f'dpdk:net_virtio_user0,path={folder}/vm,mac=02:00:00:00:00:02')]


class Taps:
    """Taps that urxe creates, joined by a bridge of the kernel."""

    NAME = 'tap{}'

    @contextlib.contextmanager
    def ends(self, bench):
        prefix = bench.place('bridge').namespace.prefix()
        yield [(prefix, f'tap:{self.NAME.format(end)}') for end in range(2)]

    def plug(self, bench, end):
        name = self.NAME.format(end)
        bench.place('bridge').plug(name)


class Station:
    """A figure of `urxe bench`'s output. Both ends poll, each on its CPU."""

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
                # Ends the program in order, so that it removes its XDP program from the interface.
                listener.kill(signal.SIGTERM)
                succeed(listener, SECONDS)
            finally:
                listener.kill()
        return self.figure(json.loads(client.output()))


class BareFrames(Station, Limit):
    """What port and cable can do without an engine: a figure of frames as long as those of SENDs and WRITEs."""

    def __init__(self, cable, figure='frame_latency_s'):
        super().__init__(cable, lambda found: found[figure], ['--bare'])


class IdleByCable:
    """The CPU share of an idle urxed at one end of a shared-memory cable, with another urxed at the other end."""

    def __init__(self, cable):
        self.cable = cable

    def measure(self, bench):
        with self.cable.ends(bench) as ends, contextlib.ExitStack() as stack:
            hosts = [stack.enter_context(Host(bench.build, arguments=['--uplink', port]))
                     for _, port in ends]
            time.sleep(4)  # until the daemons are connected and have been idle for some time
            return share([hosts[0].daemon_pid()], Idle.SECONDS)
