# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Two hosts on one machine: network namespaces that a veth cable joins, a urxed in each."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../smoke'))
from host import Host, skip, until  # noqa: E402

INTERFACE = 'eth0'
DAEMON_NICE = -10
VLAN = 100

# By number of the host. VLAN 100 is urxed's alone, the other two the kernel has as well.
IPV4 = '192.0.2.{}'
IPV6 = 'fd00:2::{}'
IPV4_IN_VLAN = '198.51.100.{}'

TAP = 'utap0'
BRIDGE = 'br0'


class Namespace:
    """
    A network namespace without a name. It lasts as long as something runs in it, at least
    a process that ends with this one, so nothing is left behind however a test ends.
    """

    def __init__(self):
        self.holder = subprocess.Popen(['unshare', '--net', 'sh', '-c', 'echo; exec cat'],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE)
        if not self.holder.stdout.readline():
            skip(f'no network namespace: {self.holder.stderr.read().decode().strip()}')
        self.pid = self.holder.pid

    def close(self):
        self.holder.kill()
        self.holder.communicate()

    def prefix(self):
        """What stands before a command so that it runs here, and ends when this process does."""
        return ['setpriv', '--pdeathsig', 'KILL', 'nsenter', f'--net=/proc/{self.pid}/ns/net', '--']

    def ip(self, *arguments):
        return run(self.prefix() + ['ip', *arguments])


def run(argv):
    result = subprocess.run(argv, capture_output=True, text=True, check=False)
    if result.returncode:
        skip(f'{" ".join(argv)}: {result.stderr.strip()}')
    return result.stdout


def prefer(daemon):
    """
    Two hosts have the processors of one. Where more programs run than those can serve, a daemon
    that waits for its turn loses what comes meanwhile.
    """
    try:
        os.setpriority(os.PRIO_PROCESS, daemon.process.pid, DAEMON_NICE)
    except PermissionError:
        pass  # it goes without, slower


class Ethernet:
    """Hosts a and b, each in a namespace of its own with an interface eth0."""

    kernel_ipv4 = IPV4  # where programs meet over TCP

    def __init__(self, build, mtus, arguments=(), uplink='af_packet:' + INTERFACE):
        self.namespaces = []
        self.hosts = []
        try:
            self.namespaces = [Namespace() for _ in mtus]
            self.plug(mtus)
            for number, namespace in enumerate(self.namespaces, 1):
                host = Host(build, prefix=namespace.prefix(), arguments=[
                    '--uplink', uplink, *self.given_addresses(number), *arguments])
                self.hosts.append(host)
                prefer(host.daemon)
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise

    def given_addresses(self, number):
        """Options for those that urxed does not find with the uplink's interface."""
        return ['--address', f'{IPV4_IN_VLAN.format(number)}/24@{VLAN}']

    def ends(self, address, kind='RoCE v2'):
        """What cell.run_program takes: host, GID index, address for TCP."""
        return [(host, host.gid(address.format(number), kind), self.kernel_ipv4.format(number))
                for number, host in enumerate(self.hosts, 1)]

    def plug(self, mtus):
        """Joins the namespaces with a cable, and gives both ends their addresses."""
        a, b = self.namespaces
        run(['ip', 'link', 'add', INTERFACE, 'netns', str(a.pid), 'mtu', str(mtus[0]), 'type',
             'veth', 'peer', 'name', INTERFACE, 'netns', str(b.pid), 'mtu', str(mtus[1])])
        for number, namespace in enumerate(self.namespaces, 1):
            namespace.ip('addr', 'add', IPV4.format(number) + '/24', 'dev', INTERFACE)
            namespace.ip('addr', 'add', IPV6.format(number) + '/64', 'dev', INTERFACE, 'nodad')
            # The kernel asks for a neighbour from this one.
            namespace.ip('addr', 'add', f'fe80::{number}/64', 'dev', INTERFACE, 'nodad')
            namespace.ip('link', 'set', 'lo', 'up')
            # A link-local address comes when it has been probed for: later than the rest.
            namespace.ip('link', 'set', INTERFACE, 'addrgenmode', 'none')
            namespace.ip('link', 'set', INTERFACE, 'up')
        # The kernel finds out a little later that there is a carrier.
        for namespace in self.namespaces:
            until(10, lambda n=namespace: 'state UP' in n.ip('link', 'show', INTERFACE),
                  lambda: f'{INTERFACE} does not come up')

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for host in self.hosts:
            host.__exit__(*error)
        for namespace in self.namespaces:
            namespace.close()


class Bridged(Ethernet):
    """The hosts are stations behind the kernel's bridge, by taps; the kernel has other addresses."""

    kernel_ipv4 = '203.0.113.{}'

    def __init__(self, build, mtus, arguments=()):
        super().__init__(build, mtus, arguments, f'tap:{TAP}')
        for namespace in self.namespaces:
            namespace.ip('link', 'set', TAP, 'master', BRIDGE)
            namespace.ip('link', 'set', TAP, 'up')

    def given_addresses(self, number):
        return [*super().given_addresses(number), '--address', IPV4.format(number) + '/24',
                '--address', IPV6.format(number) + '/64']

    def plug(self, mtus):
        super().plug(mtus)
        for number, namespace in enumerate(self.namespaces, 1):
            namespace.ip('addr', 'flush', 'dev', INTERFACE)
            namespace.ip('link', 'add', BRIDGE, 'type', 'bridge')
            namespace.ip('link', 'set', INTERFACE, 'master', BRIDGE)
            namespace.ip('addr', 'add', self.kernel_ipv4.format(number) + '/24', 'dev', BRIDGE)
            namespace.ip('link', 'set', BRIDGE, 'up')
