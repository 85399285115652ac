# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
A host with urxe0 and a virtual machine with Linux' rxe0 on one Ethernet: urxed and QEMU in a network namespace,
joined by the kernel's taps.
"""
import argparse
import os
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../harness'), os.path.join(HERE, '../hosts/paths'),
                os.path.join(HERE, '../guests')]
from ethernet import IPV4, IPV6, Namespace, prefer  # noqa: E402
from guest import Guest  # noqa: E402
from host import Host, until  # noqa: E402
from image import Image  # noqa: E402

MACHINE_TAP = 'tap0'  # QEMU's
HOST_TAP = 'utap0'  # urxed's, with tap:
BRIDGE = 'br0'

# The tap's queue holds all frames of a program, because UC and UD do not wait for answers and the machine's
# processors are emulated. By default a tap drops frames when 500 wait.
QUEUE = 10000

# Addresses of the host and of the machine.
ADDRESSES = {4: (IPV4.format(1), IPV4.format(2)), 6: (IPV6.format(1), IPV6.format(2))}

# urxed's counters of each impairment.
FAULTS = {'drop': 'dropped', 'duplicate': 'duplicated', 'reorder': 'reordered'}

NICS = {'vmxnet3': 'vmxnet3', 'virtio': 'virtio-net-pci,host_mtu={mtu}'}


def own_addresses():
    """The host's addresses, in the forms of the kernel and of urxed."""
    return [f'{ADDRESSES[4][0]}/24', f'{ADDRESSES[6][0]}/64']


class Wire:
    """urxed uses the machine's tap as its interface, by af_packet:."""

    uplink = f'af_packet:{MACHINE_TAP}'
    arguments = ()
    mtu = 4200  # for packets with 4096 bytes of payload

    def __init__(self):
        self.namespace = Namespace()
        self.namespace.ip('link', 'set', 'lo', 'up')
        self.namespace.ip('tuntap', 'add', MACHINE_TAP, 'mode', 'tap')
        self.namespace.ip('link', 'set', MACHINE_TAP, 'mtu', str(self.mtu),
                          'txqueuelen', str(QUEUE), 'up')
        self.lead()

    def lead(self):
        for address in own_addresses():
            quick = ['nodad'] if ':' in address else []
            self.namespace.ip('addr', 'add', address, 'dev', MACHINE_TAP, *quick)

    def joined(self):
        """Called when urxed runs."""


class Bridged(Wire):
    """urxed has a tap of its own, which the kernel's bridge joins to the machine's tap."""

    uplink = f'tap:{HOST_TAP}'
    arguments = [word for address in own_addresses() for word in ('--address', address)]
    mtu = 1500  # DPDK's net_tap sends nothing longer

    def lead(self):
        # Without multicast snooping the bridge forwards groups to all ports.
        self.namespace.ip('link', 'add', BRIDGE, 'type', 'bridge', 'mcast_snooping', '0')
        self.namespace.ip('link', 'set', MACHINE_TAP, 'master', BRIDGE)
        self.namespace.ip('link', 'set', BRIDGE, 'up')

    def joined(self):
        self.namespace.ip('link', 'set', HOST_TAP, 'master', BRIDGE, 'up')


WIRES = {'af_packet': Wire, 'tap': Bridged}


class Lan:
    """`host` is a Host and `guest` a Guest of this image; each can reach the other."""

    def __init__(self, build, image, uplink, nic, fault=None):
        self.wire = WIRES[uplink]()
        self.fault = fault
        self.host = self.guest = None
        prefix = self.wire.namespace.prefix()
        try:
            # The tap, and so the uplink, has a carrier only when the machine runs.
            self.guest = Guest(image, ['-netdev', f'tap,id=n0,ifname={MACHINE_TAP},'
                                       'script=no,downscript=no'], NICS[nic].format(mtu=self.wire.mtu),
                               prefix=prefix)
            self.host = Host(build, prefix=prefix, arguments=[
                '--uplink', self.wire.uplink, *self.wire.arguments,
                *(['--fault', fault] if fault else [])])
            prefer(self.host.daemon)
            self.wire.joined()
            self.guest.make_rxe(ADDRESSES[4][1], self.wire.mtu, ADDRESSES[6][1])
            self.guest.wait_neighbour(ADDRESSES[4][0])
            until(30, lambda: 'PORT_ACTIVE' in self.host.run('ibv_devinfo'), lambda: 'no link')
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise

    def check_faults(self, enough=all):
        """
        Checks urxed's counters: it has dropped, duplicated and reordered frames of each direction, as its option
        says. With enough=any one of these is sufficient for a direction.
        """
        daemon = self.host.daemon
        wanted = [[f'faults {way}: {FAULTS[key]} ' for key in FAULTS if f'{key}=' in self.fault]
                  for way in ('in', 'out')]
        daemon.kill(signal.SIGUSR1)
        until(20, lambda: all(enough(text in daemon.errors() for text in texts) for texts in wanted),
              lambda: f'a fault has not happened: {daemon.errors()}')

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for end in (self.host, self.guest):
            if end:
                end.__exit__(*error)
        self.wire.namespace.close()


# --- Options of all tests

def parser(doc, parts=None):
    """The parser of the options that select a Lan."""
    options = argparse.ArgumentParser(description=doc)
    options.add_argument('--build', required=True)
    options.add_argument('--uplink', choices=WIRES, required=True)
    options.add_argument('--nic', choices=NICS, required=True)
    options.add_argument('--kernel', default='kernel', help='folder of the kernel, beside the build directory')
    options.add_argument('--fault', help='impairments of received and sent frames, by urxed')
    if parts:
        options.add_argument('--part', choices=parts, required=True)
    return options


def make(options, programs=()):
    """The Lan that the options select."""
    image = Image(options.build, programs, kernel_folder=options.kernel)
    return Lan(options.build, image, options.uplink, options.nic, options.fault)
