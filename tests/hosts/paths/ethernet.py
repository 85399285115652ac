# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Two hosts on one machine: network namespaces joined by a veth cable, with a urxed in each."""
import contextlib
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from host import Host, skip, until  # noqa: E402
from network import judge  # noqa: E402

INTERFACE = 'eth0'
DAEMON_NICE = -10
GROUP_NICE = -5
VLAN = 100

# Formats with the host's number. Only urxed has an address in VLAN 100; the kernel has the other two as well.
IPV4 = '192.0.2.{}'
IPV6 = 'fd00:2::{}'
IPV4_IN_VLAN = '198.51.100.{}'

TAP = 'utap0'
BRIDGE = 'br0'


class Namespace:
    """
    A network namespace without a name, kept alive by a process that ends with the test. So it disappears even
    if the test is killed.
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
        """The prefix of a command line that runs in the namespace and ends with this process."""
        return ['setpriv', '--pdeathsig', 'KILL', 'nsenter', f'--net=/proc/{self.pid}/ns/net', '--']

    def run(self, argv, stdin=''):
        return run(self.prefix() + argv, stdin)

    def ip(self, *arguments):
        return self.run(['ip', *arguments])


def run(argv, stdin=''):
    """Runs a command, which must succeed; returns its output. Skips the test if the kernel lacks what it needs."""
    result = subprocess.run(argv, input=stdin, capture_output=True, text=True, check=False)
    judge(' '.join(argv), result)
    return result.stdout


def prefer(daemon):
    """
    Raises the priority of a daemon. Two hosts share the CPUs of one machine, and a daemon that waits for a CPU
    loses frames. The kernel may group tasks by session (sched(7), autogroup): a task's nice value then counts within its
    group, so the group needs one, too.
    """
    pid = daemon.process.pid
    # Without permission the test is slower. A kernel without groups has no such file.
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, DAEMON_NICE)
        with open(f'/proc/{pid}/autogroup', 'w', encoding='ascii') as group:
            group.write(str(GROUP_NICE))


WAYS = 'direct', 'switch'


def way_arguments(way):
    """Options of urxed by which programs send to other hosts by sockets of their own, or through the switch."""
    return [] if way == 'direct' else ['--direct-uplink', 'none']


class Network:
    """Hosts in namespaces of their own; a subclass adds them. Leaving it ends them all."""

    def __init__(self):
        self.namespaces, self.hosts = [], []

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for host in self.hosts:
            host.__exit__(*error)
        for namespace in self.namespaces:
            namespace.close()


class Ethernet(Network):
    """Hosts a and b, each in a namespace of its own with an interface eth0."""

    kernel_ipv4 = IPV4  # the addresses of the programs' TCP connections

    def __init__(self, build, mtus, arguments=(), uplink='af_packet:' + INTERFACE):
        super().__init__()
        self.build = build
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
        """Options for addresses that the uplink's interface does not have."""
        return ['--address', f'{IPV4_IN_VLAN.format(number)}/24@{VLAN}']

    def ends(self, address, kind='RoCE v2'):
        """Both ends for cell.run_program: host, GID index, address for TCP."""
        return [(host, host.gid(address.format(number), kind), self.kernel_ipv4.format(number))
                for number, host in enumerate(self.hosts, 1)]

    def plug(self, mtus, macs=()):
        """Joins the namespaces by a cable, and gives both ends their addresses. Without MACs the kernel chooses them."""
        a, b = self.namespaces
        of_a, of_b = [['address', mac] for mac in macs] or ([], [])
        run(['ip', 'link', 'add', INTERFACE, 'netns', str(a.pid), 'mtu', str(mtus[0]), *of_a, 'type',
             'veth', 'peer', 'name', INTERFACE, 'netns', str(b.pid), 'mtu', str(mtus[1]), *of_b])
        for number in range(1, len(self.namespaces) + 1):
            self.give_addresses(number)
        # The kernel reports the carrier a little later.
        for namespace in self.namespaces:
            until(10, lambda n=namespace: 'state UP' in n.ip('link', 'show', INTERFACE),
                  lambda: f'{INTERFACE} does not come up')

    def give_addresses(self, number):
        """Gives an end its addresses, and sets it up."""
        namespace = self.namespaces[number - 1]
        namespace.ip('addr', 'add', IPV4.format(number) + '/24', 'dev', INTERFACE)
        namespace.ip('addr', 'add', IPV6.format(number) + '/64', 'dev', INTERFACE, 'nodad')
        # The kernel sends neighbour solicitations from this address.
        namespace.ip('addr', 'add', f'fe80::{number}/64', 'dev', INTERFACE, 'nodad')
        namespace.ip('link', 'set', 'lo', 'up')
        # The link-local address appears later, after duplicate address detection.
        namespace.ip('link', 'set', INTERFACE, 'addrgenmode', 'none')
        namespace.ip('link', 'set', INTERFACE, 'up')


class Bridged(Ethernet):
    """The hosts are stations on taps behind the kernel's bridge, with other addresses than the kernel."""

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
