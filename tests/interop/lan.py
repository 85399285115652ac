# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
A host and a virtual machine on one Ethernet: urxed and QEMU in a network namespace, joined by the
kernel's taps. The host has urxe0, the machine Linux' rxe0.
"""
import argparse
import os
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../smoke'), os.path.join(HERE, '../hosts'),
                os.path.join(HERE, '../guests')]
from ethernet import IPV4, IPV6, Namespace, prefer  # noqa: E402
from guest import Guest  # noqa: E402
from host import Host, until  # noqa: E402
from image import Image  # noqa: E402

MACHINE_TAP = 'tap0'  # QEMU's
HOST_TAP = 'utap0'  # urxed's, with tap:
BRIDGE = 'br0'

# Frames that wait for the machine, whose processors are emulated, may be all that a program sends:
# UC and UD wait for no answer. By itself a tap drops what comes when 500 wait.
QUEUE = 10000

# Of the host and of the machine.
ADDRESSES = {4: (IPV4.format(1), IPV4.format(2)), 6: (IPV6.format(1), IPV6.format(2))}

# As urxed counts what its option asks for.
FAULTS = {'drop': 'dropped', 'duplicate': 'duplicated', 'reorder': 'reordered'}

NICS = {'vmxnet3': 'vmxnet3', 'virtio': 'virtio-net-pci,host_mtu={mtu}'}


def own_addresses():
    """The host's, as the kernel and urxed want them."""
    return [f'{ADDRESSES[4][0]}/24', f'{ADDRESSES[6][0]}/64']


class Wire:
    """The machine's tap is the interface of which urxed has its frames and its addresses."""

    uplink = f'af_packet:{MACHINE_TAP}'
    arguments = ()
    mtu = 4200  # so that packets carry up to 4096 bytes

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
        """urxed runs."""


class Bridged(Wire):
    """urxed has a tap of its own, and the kernel's bridge joins it to the machine's."""

    uplink = f'tap:{HOST_TAP}'
    arguments = [word for address in own_addresses() for word in ('--address', address)]
    mtu = 1500  # DPDK's net_tap sends nothing longer

    def lead(self):
        # Groups reach everybody: nobody here asks who is in one.
        self.namespace.ip('link', 'add', BRIDGE, 'type', 'bridge', 'mcast_snooping', '0')
        self.namespace.ip('link', 'set', MACHINE_TAP, 'master', BRIDGE)
        self.namespace.ip('link', 'set', BRIDGE, 'up')

    def joined(self):
        self.namespace.ip('link', 'set', HOST_TAP, 'master', BRIDGE, 'up')


WIRES = {'af_packet': Wire, 'tap': Bridged}


class Lan:
    """`host` is a Host, `guest` a Guest of this image, each reachable for the other."""

    def __init__(self, build, image, uplink, nic, fault=None):
        self.wire = WIRES[uplink]()
        self.fault = fault
        self.host = self.guest = None
        prefix = self.wire.namespace.prefix()
        try:
            # With the machine the link has a carrier, and so has what it is an uplink of.
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
        Frames of either direction have been lost, doubled and held back, whichever was asked for:
        urxed counts them. With `any` one of these will do for a direction.
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


# --- What all tests are told

def parser(doc, parts=None):
    """Of the options that say what Lan is made."""
    options = argparse.ArgumentParser(description=doc)
    options.add_argument('--build', required=True)
    options.add_argument('--uplink', choices=WIRES, required=True)
    options.add_argument('--nic', choices=NICS, required=True)
    options.add_argument('--kernel', default='kernel', help='its folder, beside the build directory')
    options.add_argument('--fault', help='what urxed does to the frames of either direction')
    if parts:
        options.add_argument('--part', choices=parts, required=True)
    return options


def make(options, programs=()):
    """A Lan, of options as above."""
    image = Image(options.build, programs, kernel_folder=options.kernel)
    return Lan(options.build, image, options.uplink, options.nic, options.fault)
