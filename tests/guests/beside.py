#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
urxe in a machine whose kernel has an RDMA device: programs under `urxe run` have both, rxe0 and
urxe0, and see devices of the kernel's come and go.
"""
import re
import sys

from guest import Guest
from host import Failure, main, until
from image import Image

MTU = 4200
# Nobody is at the other end.
WIRE = ['-netdev', 'hubport,id=n0,hubid=0']
KERNEL = '192.0.2.2'  # an address of rxe0
OWN = '127.0.0.1'  # which is urxe0's wherever it is
MEMORY_MB = 2048
RUN = '/urxe/tools/urxe run --run-dir /tmp/urxe --'


def devices(guest):
    """Names of the devices that ibv_devices lists under urxe run."""
    listing = guest.run(f'{RUN} ibv_devices')
    return set(re.findall(r'^\s+(\S+)\s+[0-9a-f]{16}$', listing, re.MULTILINE))


def expect_devices(guest, *expected):
    until(60, lambda: devices(guest) == set(expected),
          lambda: f'{devices(guest)} are listed, and not {expected}')


def pingpong(guest, device, gid, port):
    argv = f'{RUN} ibv_rc_pingpong -d {device} -g {gid} -p {port} -n 100 -c'
    server = guest.start(argv)
    guest.wait_listening(port)
    guest.run(f'{argv} {OWN}')
    if server.wait(60):
        raise Failure(server.describe())


def check_verbs(guest):
    expect_devices(guest, 'rxe0', 'urxe0')
    pingpong(guest, 'rxe0', guest.gid(KERNEL), 20001)
    pingpong(guest, 'urxe0', 1, 20002)


def check_changes(guest):
    guest.run('rdma link delete rxe0')
    expect_devices(guest, 'urxe0')
    guest.run(f'rdma link add rxe0 type rxe netdev {guest.interface(guest.mac)}')
    expect_devices(guest, 'rxe0', 'urxe0')
    guest.run(f'{RUN} ibv_devinfo -v -d rxe0')


def run():
    build, = sys.argv[1:]
    image = Image(build, urxe=True)
    with Guest(image, WIRE, memory_mb=MEMORY_MB) as guest:
        guest.run('mkdir /tmp/urxe && chmod 700 /tmp/urxe')
        guest.make_rxe(KERNEL, MTU)
        guest.start('/urxe/tools/urxed --foreground --run-dir /tmp/urxe')
        guest.run('until test -S /tmp/urxe/urxed.sock; do usleep 20000; done')
        check_verbs(guest)
        check_changes(guest)


main(run)
