#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Wrongly configured machines harm only themselves: a machine without shared memory, and a machine that sends frames
longer than the host's MTU. urxed then serves a correct machine.
"""
import json
import os
import sys

from guest import Guest
from host import Failure, Host, main, succeed
from rdma import GUEST, HOST, MTU, PROGRAMS, WIRES, exchange, make_image, start

TOO_LONG = 9000


def dropped(host):
    """Number of frames from the machine that were too long or had too many segments."""
    show = host.spawn([host.urxe, 'show', 'port', '--json', '--run-dir', host.run_dir])
    succeed(show, 60)
    device, = [port['device'] for port in json.loads(show.output())['ports']
               if port['device'] and 'rx_bad' in port['device']]
    return device['rx_bad'] + device['rx_too_long']


def check_unshared(wire, image, path):
    """QEMU shares its memory with urxed but writes to a private copy, so urxed sees no frame."""
    words = [word.format(path=path).replace('share=on', 'share=off') for word in wire.netdev]
    with Guest(image, words, wire.nic) as guest:
        guest.make_rxe(GUEST, MTU)
        name = guest.interface(guest.mac)
        if guest.start(f'arping -q -c 3 -w 3 -I {name} {HOST}').wait(60) == 0:
            raise Failure('a machine whose memory is not shared is answered')


def check_too_long(wire, image, path, host):
    words = [word.format(path=path) for word in wire.netdev]
    with Guest(image, words, wire.nic.replace(f'={MTU}', f'={TOO_LONG}')) as guest:
        guest.make_rxe(GUEST, TOO_LONG)
        guest.wait_neighbour(HOST)
        before = dropped(host)
        guest.start(f'ping -c 3 -W 1 -s {TOO_LONG - 100} {HOST}').wait(60)
        if dropped(host) == before:
            raise Failure('frames that are too long are not counted')
        exchange(host, guest, PROGRAMS[1:2])


def run():
    build, name = sys.argv[1:]
    wire, image = WIRES[name], make_image(build)
    with Host(build, daemon=False) as host:
        path = os.path.join(host.run_dir, 'nic')
        start(host, wire.arguments(path))
        if name == 'vhost':
            check_unshared(wire, image, path)
        check_too_long(wire, image, path, host)
        with wire.boot(image, path) as guest:
            exchange(host, guest, PROGRAMS[1:2])


main(run)
