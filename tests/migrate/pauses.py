#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Prints the pauses between the answers of a virtual machine, as verbs_flow prints those between messages: how long the
machine is silent during its migration, without any RDMA. The kinds:

ping: its kernel answers a ping each 5 ms.
udp:  a program (echo.c) answers a datagram each 5 ms. The sender waits for no answer, so no timer delays it.
tcp:  the same program answers the next bytes 5 ms after the last ones, if their echo has come. The sender's kernel repeats
      them, after 200 ms or more.
"""
import contextlib
import select
import socket
import struct
import sys
import time

INTERVAL = 0.005
LEAST_MS = 20
SIZE = 64


def checksum(data):
    total = sum(struct.unpack(f'!{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def echo_request():
    """RFC 792: type 8, code 0, checksum, identifier, sequence number."""
    head = struct.pack('!BBHHH', 8, 0, 0, 4711, 0)
    return struct.pack('!BBHHH', 8, 0, checksum(head), 4711, 0)


class Ping:
    waits = False  # for an answer, before the next request

    def __init__(self, address, _port):
        self.link = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        self.link.connect((address, 0))

    def send(self):
        self.link.send(echo_request())

    def answered(self):
        return self.link.recv(200)[20] == 0  # behind the IPv4 header: an echo reply


class Udp:
    waits = False

    def __init__(self, address, port):
        self.link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.link.connect((address, port))

    def send(self):
        with contextlib.suppress(ConnectionRefusedError):
            self.link.send(bytes(SIZE))

    def answered(self):
        with contextlib.suppress(ConnectionRefusedError):
            return bool(self.link.recv(SIZE))
        return False


class Tcp:
    waits = True

    def __init__(self, address, port):
        self.link = socket.create_connection((address, port))
        self.link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self):
        self.link.send(bytes(SIZE))

    def answered(self):
        if len(self.link.recv(SIZE, socket.MSG_WAITALL)) < SIZE:
            sys.exit('the machine has closed the connection')
        return True


KINDS = {'ping': Ping, 'udp': Udp, 'tcp': Tcp}


def run(kind, address, port):
    end = KINDS[kind](address, port)
    heard, due, waits = 0, time.monotonic(), False
    while True:
        now = time.monotonic()
        if now >= due and not waits:
            end.send()
            due, waits = now + INTERVAL, end.waits
        if not select.select([end.link], [], [], None if waits else max(0, due - now))[0] or not end.answered():
            continue
        now, waits = time.monotonic(), False
        if heard and (now - heard) * 1e3 >= LEAST_MS:
            print(f'pause of {(now - heard) * 1e3:.1f} ms until {time.time():.4f}', flush=True)
        heard = now


if __name__ == '__main__':
    run(sys.argv[1], sys.argv[2], int(sys.argv[3]))
