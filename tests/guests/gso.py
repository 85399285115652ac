#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
UDP GSO between two virtual machines with urxe: packets of a message leave together, arrive together, and have the
right contents, in both directions.
"""
import contextlib
import os
import re
import sys

from gso_machine import Lan, MTU, enable_gso, gso_image
from host import Failure, main, until
from kernel_bond import ADDRESSES, FLOW, PORT, RUN_DIR, SECONDS, count_messages

TOGETHER = 2  # packets in a frame, at least, on average; 64 KiB and their ACKs have 17 packets in 3 frames
PACKETS = 20000  # that each machine receives before they are counted
MAC = '52:54:00:00:01:0{}'


class End:
    """A machine on which urxed runs."""

    def __init__(self, guest, address):
        self.guest = guest
        self.address = address
        guest.run('rmmod rdma_rxe')
        self.nic = guest.raise_link(MTU, address)
        enable_gso(guest)
        guest.run(f'mkdir -p {RUN_DIR} && chmod 700 {RUN_DIR} && '
                  f'/urxe/tools/urxed --run-dir {RUN_DIR} --uplink af_packet:{self.nic}')
        self.gid = guest.gid(address, f'{RUN_DIR}/sys/class/infiniband/urxe0')

    def flow(self, *words):
        return self.guest.start(f'/urxe/tools/urxe run --run-dir {RUN_DIR} -- verbs_flow -p {PORT} -t 19 -s 65536 -d urxe0 '
                                f'-g {self.gid} {" ".join(words)}')

    def frames(self, way):
        """Frames that the NIC has sent or received: a UDP GSO packet is one."""
        return int(self.guest.run(f'cat /sys/class/net/{self.nic}/statistics/{way}_packets'))

    def packets(self, way):
        """Packets that the programs of this machine have sent or received by direct uplinks."""
        shown = self.guest.run(f'/urxe/tools/urxe show --run-dir {RUN_DIR} counter')
        return sum(map(int, re.findall(rf'\suplink_{way}\s+(\d+)', shown)))


def check(one, two):
    ways = [(end, way) for end in (one, two) for way in ('tx', 'rx')]
    server = two.flow()
    two.guest.wait_listening(PORT)
    before = [end.frames(way) for end, way in ways]
    client = one.flow(two.address)
    until(SECONDS, lambda: not client.running() or all(end.packets('received') > PACKETS for end in (one, two)),
          client.describe)
    packets = [end.packets({'tx': 'sent', 'rx': 'received'}[way]) for end, way in ways]
    frames = [end.frames(way) - old for (end, way), old in zip(ways, before)]
    one.guest.run('killall -TERM verbs_flow')
    counts = [count_messages(program) for program in (client, server)]
    print(f'{counts[0]} messages, packets {packets} in frames {frames}: sent and received by each machine')
    if counts[0] != counts[1] or any(p < TOGETHER * f for p, f in zip(packets, frames)):
        raise Failure(f'packets do not pass together: {packets} in {frames} frames, {counts} messages')


def run():
    build, = sys.argv[1:]
    image = gso_image(build, [os.path.join(build, FLOW)])
    with contextlib.ExitStack() as stack:
        lan = stack.enter_context(Lan())
        check(*[End(stack.enter_context(lan.boot(build, image, number, MAC.format(number))), address)
                for number, address in enumerate(ADDRESSES)])


if __name__ == '__main__':
    main(run)
