#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
The virtual machine by hand of tests/hosts/vm/ migrates between the device processes of two hosts while it exchanges
messages with Linux' rdma_rxe, which is in another machine at the bridge and knows nothing of the moves. The second and
third arguments are the options --doorbells of both processes.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../guests'), os.path.join(HERE, '../hosts/vm')]
from ports import MTU, Lan, Tap
from guest import Guest  # noqa: E402
from host import Failure, Program, main  # noqa: E402
from image import Image  # noqa: E402
from migrating_vm import BUILD, ITERATIONS, MAC, PINGPONG, finish, machine_command, start_devices  # noqa: E402

# Of the machine and of its peer, as in hand_made_vm.c.
ADDRESS, PEER = '10.0.0.9', '10.0.0.2'
PEER_MAC = '52:54:00:00:00:11'
COUNTERS = '/sys/class/infiniband/rxe0/ports/1/hw_counters'


def start_pingpong(guest):
    """Starts ibv_rc_pingpong; it listens at the port of 127.0.0.1 that QEMU forwards to the guest."""
    guest.make_rxe(PEER, MTU)
    # The machine answers no ARP request.
    guest.run(f'arp -s {ADDRESS} {MAC}')
    program = guest.start(' '.join(['ibv_rc_pingpong', '-d', guest.RDMA, '-g', str(guest.gid(PEER)), *PINGPONG,
                                    '-p', str(guest.port)]))
    guest.wait_listening(guest.port)
    return program


def check_counters(guest):
    """rdma_rxe has sent and received each message once."""
    counters = dict(line.split(':') for line in guest.run(f'cd {COUNTERS}; grep . *').split())
    if not counters['rdma_sends'] == counters['rdma_recvs'] == str(ITERATIONS):
        raise Failure(f'not {ITERATIONS} messages: {counters}')
    print(f'rdma_rxe began {counters["completer_retry_err"]} repetitions')


def check():
    image = Image(BUILD)
    with Lan(BUILD, 'stream_virtio', lambda _uplinks: []) as lan:
        tap = Tap(lan.wire)
        with Guest(image, tap.arguments(None, None), tap.device, PEER_MAC, 'rxe', prefix=tap.prefix) as guest:
            devices = start_devices(lan.hosts[:2])
            peer = start_pingpong(guest)
            machine = Program([*lan.wire.prefix(), *machine_command(devices, PEER_MAC, guest.port)], os.environ)
            finish(devices, machine, peer)
            check_counters(guest)


if __name__ == '__main__':
    main(check)
