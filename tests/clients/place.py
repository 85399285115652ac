# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Where clients run: two processes on one host, without or with an HCA, or one process on each of two hosts."""
from contextlib import contextmanager

from ethernet import Ethernet, INTERFACE, IPV4, Namespace
from host import Host, until
from nested import OUTER, Nested


class OneHost:
    """
    A urxed without an uplink. The network namespace keeps the clients' default TCP ports free of other
    programs.
    """

    title = 'one host'
    address = '127.0.0.1'
    connected_device = 'urxe0'  # on which connections of rdma_cm are

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


class TwoHosts:
    """Two network namespaces, a veth cable, and a urxed with an af_packet: uplink at either end."""

    title = 'two hosts'
    connected_device = 'urxe0'
    address = IPV4.format(1)
    addresses = [address, IPV4.format(2)]

    def __init__(self, build, arguments=()):
        self.net = Ethernet(build, [1500] * 2, arguments)
        self.server, self.client = self.net.hosts

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


class OverHca(OneHost):
    """As OneHost, but an HCA executes all queue pairs of urxe0: the device of another urxe."""

    title = 'over an HCA'
    connected_device = 'hca0'

    def start(self, build, prefix):
        self.outer = Host(build, prefix=prefix, arguments=OUTER)
        self.server = self.client = Nested(build, self.outer, prefix=prefix)
        self.server.way = 'hca'
        self.server.log = 'error'

    def __exit__(self, *error):
        self.server.__exit__(*error)
        self.outer.__exit__(*error)
        self.namespace.close()


# docs/clients.md has the results of these.
PLACES = {'one': OneHost, 'two': TwoHosts}
ALL_PLACES = {**PLACES, 'hca': OverHca}
