#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Prints the frames of an interface that come from the moving machine or go to it, and when the kernel saw them: which event
of a migration ends the pause. `timeline` finds the events in that output.
"""
import re
import socket
import struct
import sys

ETH_P_ALL = 3
SO_TIMESTAMPNS = 35
RARP, ARP, IPV4 = 0x8035, 0x0806, 0x0800
ICMP, UDP, ROCE = 1, 17, 4791
ACKNOWLEDGE, NAK = 17, 0x60  # BTH opcode; the bits of an AETH syndrome that is a NAK


def describe(frame):
    """'rarp', 'arp', 'icmp', 'ack', 'nak', 'roce', or None."""
    ether_type = struct.unpack_from('!H', frame, 12)[0]
    if ether_type in (RARP, ARP):
        return 'rarp' if ether_type == RARP else 'arp'
    if ether_type != IPV4:
        return None
    if frame[23] == ICMP:
        return 'icmp'
    if frame[23] != UDP or len(frame) < 58 or struct.unpack_from('!H', frame, 36)[0] != ROCE:
        return None
    if frame[42] != ACKNOWLEDGE:
        return 'roce'
    return 'nak' if frame[54] & NAK == NAK else 'ack'


def watch(interface, mac):
    """Prints a line for each frame: seconds of the wall clock, 'from' or 'to' the machine, kind."""
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    link.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    link.bind((interface, 0))
    while True:
        frame, controls, _, _ = link.recvmsg(64, 64)
        way = 'from' if frame[6:12] == mac else 'to' if frame[:6] == mac else None
        kind = way and describe(frame)
        if kind:
            seconds, nanoseconds = struct.unpack('qq', controls[0][2])
            print(f'{seconds}.{nanoseconds:09d} {way} {kind}', flush=True)


def parse(text):
    return [(float(at), way, kind) for at, way, kind in re.findall(r'^([\d.]+) (from|to) (\w+)$', text, re.MULTILINE)]


def first(frames, after, way, *kinds):
    """Milliseconds from `after` to the first frame of these kinds, or None."""
    return next(((at - after) * 1e3 for at, found, kind in frames if at >= after and found == way and kind in kinds), None)


def timeline(frames, stopped_at, resumed_at, end):
    """Events of a migration, in ms after the resumption, but for the first two."""
    frames = [frame for frame in frames if frame[0] < end]
    roce = 'roce', 'ack', 'nak'
    unheard = [at for at, way, kind in frames if stopped_at <= at < resumed_at and way == 'to' and kind in roce]
    last = max((at for at, way, kind in frames if at < resumed_at and way == 'from' and kind in roce), default=stopped_at)
    return {
        'last packet of the machine, after its stop': (last - stopped_at) * 1e3,
        'packets of the peer while no QEMU ran the machine': len(unheard),
        'last of them, before the resumption': (unheard[-1] - resumed_at) * 1e3 if unheard else None,
        'RARP': first(frames, resumed_at, 'from', 'rarp'),
        'ARP of the machine': first(frames, resumed_at, 'from', 'arp'),
        'answer to a ping': first(frames, resumed_at, 'from', 'icmp'),
        'packet of the peer': first(frames, resumed_at, 'to', *roce),
        'packet of the machine': first(frames, resumed_at, 'from', *roce),
        'NAK of the machine': first(frames, resumed_at, 'from', 'nak'),
        'ACK of the machine': first(frames, resumed_at, 'from', 'ack'),
        'ACK of the peer': first(frames, resumed_at, 'to', 'ack'),
    }


if __name__ == '__main__':
    watch(sys.argv[1], bytes.fromhex(sys.argv[2].replace(':', '')))
