# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Virtual machines with a newer kernel whose NICs pass UDP GSO packets on whole, on taps of one bridge of this host."""
from guest import Guest
from ethernet import Namespace  # by the path that guest has set
from image import Image, find_program, only

MTU = 4200
KERNEL = 'kernel-trixie'


def gso_image(build, programs):
    return Image(build, [find_program('ethtool'), *programs], urxe=True, kernel_folder=KERNEL)


class Lan:
    """A namespace with a bridge and two taps."""

    def __init__(self):
        self.namespace = Namespace()
        ip = self.namespace.ip
        ip('link', 'set', 'lo', 'up')
        ip('link', 'add', 'br0', 'type', 'bridge', 'forward_delay', '0', 'mcast_snooping', '0')
        for tap in ('tap0', 'tap1'):
            ip('tuntap', 'add', tap, 'mode', 'tap')
            # The queue of a tap is short: a burst of packets of 4 KiB would overflow it.
            ip('link', 'set', tap, 'mtu', str(MTU), 'txqueuelen', '10000', 'master', 'br0', 'up')
        ip('link', 'set', 'br0', 'up')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.namespace.close()

    def boot(self, build, image, number, mac, **options):
        """A machine on tap 0 or 1."""
        wire = ['-netdev', f'tap,id=n0,ifname=tap{number},script=no,downscript=no']
        return Guest(image, wire, f'virtio-net-pci,host_mtu={MTU}', mac, f'machine {number}',
                     prefix=self.namespace.prefix(), qemu=only(f'{build}-guests/qemu/qemu-system-x86_64'), **options)


def enable_gso(guest):
    """Linux leaves UDP segmentation by the NIC off."""
    guest.run(f'ethtool -K {guest.interface(guest.mac)} tx-udp-segmentation on')
