#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
urxe in a machine with a GPU, that of the module vgem: a mapped dmabuf of its memory is an on-demand region. A peer process
writes, reads and sends, with copies from memory to memory if the kernel permits them, and in packets.
"""
import os
import sys

from guest import Guest
from host import Failure, main
from image import Image

# The NIC's other end is not connected.
WIRE = ['-netdev', 'hubport,id=n0,hubid=0']
MEMORY_MB = 2048


def run():
    build, = sys.argv[1:]
    image = Image(build, programs=[os.path.join(build, 'tests/memory/memory')], urxe=True, more_modules=['vgem'])
    with Guest(image, WIRE, memory_mb=MEMORY_MB) as guest:
        guest.run('mkdir /tmp/urxe && chmod 700 /tmp/urxe')
        plain = guest.run('memory dmabuf gpu')
        for transport in 'auto', 'packet':
            found = guest.run('/urxe/tools/urxe run --run-dir /tmp/urxe '
                              f'--transport {transport} -- memory -u dmabuf gpu')
            print(f'--transport {transport}:\n{found}')
            if found != plain or plain.count('yes') != 2:
                raise Failure(f'without urxe:\n{plain}')


main(run)
