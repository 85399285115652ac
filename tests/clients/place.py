# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Where clients run: two processes on one host, without or with an HCA, or one process on each of two hosts, of which one
may have an HCA.
"""
import os
import re
from contextlib import contextmanager

from ethernet import Ethernet, INTERFACE, IPV4, Namespace
from host import Failure, Host, until
from nested import OUTER, Nested
from one_hca import OneHca


class Place:
    """What all places share."""

    def named(self, argv):
        """The command, with the name of the device if it would use another one here."""
        return argv

    def check_way(self, client):
        """Raises Failure unless the client's queue pairs were executed as the place wants."""


# Programs that use the first device unless -d names another one.
FIRST_DEVICE = r'ib_(send|write|read|atomic)_(bw|lat)|ibv_(rc|uc|ud|srq|xsrq)_pingpong'
# What the library logs when a program ends.
BY_HCA = r'hca_(requests|receives): [1-9]'


class ByHca:
    """A place in which an HCA executes queue pairs of `over`, a Nested, whose first device is the HCA's own."""

    over = None

    def use(self, over):
        self.over = over
        over.way, over.log = 'hca', 'info'

    def named(self, argv):
        # With -R the server's address chooses the device.
        if not re.fullmatch(FIRST_DEVICE, os.path.basename(argv[0])) or {'-d', '-R'} & set(argv):
            return argv
        return [argv[0], '-d', 'urxe0', *argv[1:]]

    def check_way(self, client):
        """
        Raises Failure if the engine has executed the client's queue pairs on urxe0. A server may have no requests, and a host
        whose urxed has no uplink reaches the other host by the HCA only. librdmacm, which fi_pingpong uses, never closes
        the device, so the library logs no counters.
        """
        argv = client.argv
        if 'urxe0' in argv and 'fi_pingpong' not in argv and self.over.run_dir in argv and not re.search(BY_HCA, client.errors()):
            raise Failure(f'the HCA has executed nothing: {client.describe()}')


class OneHost(Place):
    """
    A urxed without an uplink. The network namespace keeps the clients' default TCP ports free of other
    programs.
    """

    title = 'one host'
    address = '127.0.0.1'

    def __init__(self, build):
        self.namespace = Namespace()
        try:
            self.namespace.ip('link', 'set', 'lo', 'up')
            self.start(build, self.namespace.prefix())
        except BaseException:
            self.namespace.close()
            raise

    def start(self, build, prefix):
        self.server = self.client = Host(build, prefix=prefix)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.server.__exit__(*error)
        self.namespace.close()

    def gid(self, _host):
        """The index of the GID of the IPv4 address."""
        return 1

    @contextmanager
    def event(self):
        """Causes an asynchronous event of the client's device, and yields the event's name."""
        self.client.daemon.kill()
        yield 'IBV_EVENT_DEVICE_FATAL'
        self.start_daemon()

    def start_daemon(self):
        self.client.start_daemon()


class TwoHosts(Place):
    """Two network namespaces, a veth cable, and a urxed with an af_packet: uplink at either end."""

    title = 'two hosts'
    address = IPV4.format(1)
    addresses = [address, IPV4.format(2)]

    def __init__(self, build, arguments=()):
        self.net = self.connect(build, arguments)
        self.server, self.client = self.net.hosts

    def connect(self, build, arguments):
        return Ethernet(build, [1500] * 2, arguments)

    def __enter__(self):
        self.wait_active()
        return self

    def wait_active(self):
        for host in self.net.hosts:
            until(20, lambda host=host: 'PORT_ACTIVE' in host.run('ibv_devinfo'), lambda: 'no link')

    def __exit__(self, *error):
        self.net.__exit__(*error)

    def gid(self, host):
        return host.gid(IPV4.format(1 + self.net.hosts.index(host)))

    @contextmanager
    def event(self):
        """Causes an asynchronous event of the client's device, and yields the event's name."""
        namespace = self.net.namespaces[1]
        namespace.ip('link', 'set', INTERFACE, 'down')
        yield 'IBV_EVENT_PORT_ERR'
        namespace.ip('link', 'set', INTERFACE, 'up')
        self.wait_active()


class OverHca(ByHca, OneHost):
    """As OneHost, but an HCA executes all queue pairs of urxe0: the device of another urxe."""

    title = 'over an HCA'

    def start(self, build, prefix):
        self.outer = Host(build, prefix=prefix, arguments=OUTER)
        self.use(Nested(build, self.outer, prefix=prefix))
        self.server = self.client = self.over

    def __exit__(self, *error):
        self.server.__exit__(*error)
        self.outer.__exit__(*error)
        self.namespace.close()


class HcaAtClient(ByHca, TwoHosts):
    """
    As TwoHosts, but an HCA executes the client's queue pairs, and the engine the server's. The client's urxed has no
    uplink: it knows no next hop to the server.
    """

    title = 'two hosts, an HCA at the client'
    number = 2

    def __init__(self, build):
        super().__init__(build)
        self.use(self.net.nested)
        self.place(self.over)

    def connect(self, build, arguments):
        return OneHca(build, self.number)

    def place(self, over):
        self.client = over

    def gid(self, host):
        return host.gid(IPV4.format(1 + (host is self.client)))


class HcaAtServer(HcaAtClient):
    """An HCA executes the server's queue pairs, and the engine the client's."""

    title = 'two hosts, an HCA at the server'
    number = 1

    def place(self, over):
        self.server = over


# docs/clients.md has the results of these.
PLACES = {'one': OneHost, 'two': TwoHosts}
ALL_PLACES = {**PLACES, 'hca': OverHca, 'hca_client': HcaAtClient, 'hca_server': HcaAtServer}
