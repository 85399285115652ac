# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Three hosts on one Ethernet: network namespaces whose eth0 is a port of a bridge in a fourth one. Hosts 1 and 2 have ports
for virtual machines.
"""
import contextlib
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../harness'), os.path.join(HERE, '../hosts/paths')]
from ethernet import DAEMON_NICE, INTERFACE, IPV4, Namespace, Network, prefer  # noqa: E402
from host import Host, until  # noqa: E402
from vhost_port import port_process  # noqa: E402

BRIDGE = 'br0'
TAP = 'tap0'
MTU = 1500


class Port:
    """A port of a host's switch, or a tap of the bridge, at which a QEMU can run a machine."""

    def __init__(self, host, uplink, device, arguments):
        self.host = host
        self.uplink = uplink
        self.device = device
        self.arguments = arguments  # (folder of the QEMU, memory in MB): QEMU's arguments for the netdev n0


def stream_port(host, path, device):
    return Port(host, f'qemu:{path}', device, lambda folder, memory_mb: [
        '-netdev', f'stream,id=n0,addr.type=unix,addr.path={path},server=off'])


def dgram_port(host, path, device):
    return Port(host, f'qemu:{path},dgram', device, lambda folder, memory_mb: [
        '-netdev', f'dgram,id=n0,local.type=unix,local.path={folder}/nic,remote.type=unix,remote.path={path}'])


def vhost_port(host, path, device):
    return Port(host, f'vhost:{path}', device, lambda folder, memory_mb: [
        '-object', f'memory-backend-memfd,id=m0,size={memory_mb}M,share=on', '-machine', 'memory-backend=m0',
        '-chardev', f'socket,id=c0,path={path}', '-netdev', 'vhost-user,id=n0,chardev=c0'])


# A kind of port, and QEMU's device.
KINDS = {
    'stream_virtio': (stream_port, 'virtio-net-pci'),
    'stream_vmxnet3': (stream_port, 'vmxnet3'),
    'dgram_virtio': (dgram_port, 'virtio-net-pci'),
    'dgram_vmxnet3': (dgram_port, 'vmxnet3'),
    'vhost': (vhost_port, 'virtio-net-pci'),
}


class Tap:
    """A port of the bridge itself; the namespace is in the place of a Host."""

    uplink = None
    # The tap would pass on checksums unfinished, and so would urxed's packet sockets on the way.
    device = 'virtio-net-pci,csum=off,gso=off,host_tso4=off,host_tso6=off,host_ufo=off,host_ecn=off'

    def __init__(self, wire):
        self.host = self
        self.prefix = wire.prefix()
        wire.ip('tuntap', 'add', TAP, 'mode', 'tap')
        wire.ip('link', 'set', TAP, 'master', BRIDGE, 'up')

    @staticmethod
    def arguments(_folder, _memory_mb):
        return ['-netdev', f'tap,id=n0,ifname={TAP},script=no,downscript=no']


def prefer_port(host):
    """As prefer, for the process of the host's vhost: port."""
    until(20, lambda: port_process(host), host.daemon.describe)
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, port_process(host), DAEMON_NICE)


class Lan(Network):
    """
    hosts[0..2] run a urxed on their eth0. `ports` has two ports of hosts 1 and 2 of one kind: (port of host 1, port of
    host 2) for the machine that moves, and `neighbour` is one of host 1 for another machine. more(number of uplinks):
    further arguments of a urxed.
    """

    def __init__(self, build, kind, more):
        super().__init__()
        make, device = KINDS[kind]
        try:
            self.wire = self.add_namespace()
            self.wire.ip('link', 'add', BRIDGE, 'type', 'bridge', 'mcast_snooping', '0', 'forward_delay', '0')
            self.wire.ip('link', 'set', BRIDGE, 'up')
            for number in (1, 2, 3):
                self.add_host(build, number)
            self.ports = [make(host, os.path.join(host.top, 'moving'), device) for host in self.hosts[:2]]
            self.neighbour = stream_port(self.hosts[0], os.path.join(self.hosts[0].top, 'staying'), 'virtio-net-pci')
            for host in self.hosts:
                machines = [port.uplink for port in (*self.ports, self.neighbour) if port.host is host]
                host.start_daemon([word for uplink in [f'af_packet:{INTERFACE}', *machines]
                                   for word in ('--uplink', uplink)] + more(1 + len(machines)))
                prefer(host.daemon)
                if any(uplink.startswith('vhost:') for uplink in machines):
                    prefer_port(host)
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise

    def add_namespace(self):
        namespace = Namespace()
        self.namespaces.append(namespace)
        namespace.ip('link', 'set', 'lo', 'up')
        return namespace

    def add_host(self, build, number):
        namespace = self.add_namespace()
        self.wire.ip('link', 'add', f'port{number}', 'mtu', str(MTU), 'type', 'veth',
                     'peer', 'name', INTERFACE, 'netns', str(namespace.pid))
        self.wire.ip('link', 'set', f'port{number}', 'master', BRIDGE, 'up')
        namespace.ip('link', 'set', INTERFACE, 'addrgenmode', 'none')
        namespace.ip('addr', 'add', IPV4.format(number) + '/24', 'dev', INTERFACE)
        namespace.ip('link', 'set', INTERFACE, 'up')
        until(10, lambda: 'state UP' in namespace.ip('link', 'show', INTERFACE), lambda: f'{INTERFACE} does not come up')
        host = Host(build, daemon=False, prefix=namespace.prefix())
        host.address = IPV4.format(number)
        self.hosts.append(host)
