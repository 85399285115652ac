#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Pings an address every 5 ms and prints the pauses between answers, as verbs_flow does: how long the kernel of a virtual
machine is silent during its migration, without any RDMA.
"""
import select
import socket
import struct
import sys
import time

INTERVAL = 0.005
LEAST_MS = 20


def checksum(data):
    total = sum(struct.unpack(f'!{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def request(number):
    """RFC 792: type 8, code 0, checksum, identifier, sequence number."""
    head = struct.pack('!BBHHH', 8, 0, 0, 4711, number & 0xffff)
    return struct.pack('!BBHHH', 8, 0, checksum(head), 4711, number & 0xffff)


def run():
    link = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    link.connect((sys.argv[1], 0))
    number, heard, due = 0, 0, time.monotonic()
    while True:
        now = time.monotonic()
        if now >= due:
            link.send(request(number))
            number, due = number + 1, now + INTERVAL
        if not select.select([link], [], [], max(0, due - now))[0]:
            continue
        if link.recv(200)[20] != 0:  # behind the IPv4 header: an echo reply
            continue
        now = time.monotonic()
        if heard and (now - heard) * 1e3 >= LEAST_MS:
            print(f'pause of {(now - heard) * 1e3:.1f} ms until {time.time():.4f}', flush=True)
        heard = now


if __name__ == '__main__':
    run()
