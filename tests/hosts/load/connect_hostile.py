#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
A third station on the Ethernet of two hosts sends connection requests from invented addresses, or claims
the address of a host. Programs of the two hosts connect meanwhile, in both directions.

    connect_hostile.py BUILD KIND          the test; KIND: absent, many, poison
    connect_hostile.py --station KIND MAC  the third station, which sends to the host with that MAC until its
                                           standard input ends, then prints how many RoCE frames it got
"""
import math
import os
import select
import shutil
import socket
import struct
import sys
import time
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../paths'))
from ethernet import Ethernet, INTERFACE, IPV4, way_arguments  # noqa: E402
from host import Failure, main, skip, until  # noqa: E402
from rdmacm import check_pair  # noqa: E402

STATION_MAC = bytes.fromhex('020000000066')
ABSENT = '192.0.2.77'
UNHEARD = 5555
RATE = {'absent': 1500, 'many': 300, 'poison': 50}  # frames per second
# A connection takes some hundredths of a second, and one whose first message was lost 4 s. Before the daemon
# had fair queues rping took 56 s. A busy machine makes rping slower without the station, too.
SECONDS = 20
TIMES = 10  # as long as without the station
SERVER, CLIENT = ['rping', '-s', '-C', '3', '-V'], ['rping', '-c', '-a', '{}', '-C', '3', '-V']


def request(number, source, target):
    """A REQ of rdma_cm for a port without listener (IBA 12.6.5, annex A11)."""
    mad = bytearray(256)
    mad[0:4] = bytes([1, 7, 2, 3])
    struct.pack_into('>QH', mad, 8, number, 0x10)
    struct.pack_into('>I4xQQ', mad, 24, number + 1, 0x0106 << 16 | UNHEARD, 0xbad)
    struct.pack_into('>I', mad, 24 + 32, (number & 0xffffff) << 8)
    mad[24 + 43] = 20 << 3
    mad[24 + 51] = 15 << 4
    mad[24 + 140:24 + 140 + 36] = struct.pack('>BBH12x4s12x4s', 0, 4 << 4, 9, source, target)
    return bytes(mad)


def roce_frame(mac, source, target, payload, number):
    """A datagram to QP1 in RoCEv2 over IPv4, with its ICRC (annex A17)."""
    bth = struct.pack('>BBHII', 0x64, 0x40, 0xffff, 1, number & 0xffffff)
    deth = struct.pack('>II', 0x80010000, 1)
    udp_len = 8 + len(bth) + len(deth) + len(payload) + 4
    ip = struct.pack('>BBHHHBBH4s4s', 0x45, 0, 20 + udp_len, 0, 0x4000, 64, 17, 0, source, target)
    words = sum(struct.unpack('>10H', ip))
    words = (words & 0xffff) + (words >> 16)
    ip = ip[:10] + struct.pack('>H', ~((words & 0xffff) + (words >> 16)) & 0xffff) + ip[12:]
    udp = struct.pack('>HHHH', 0xc000, 4791, udp_len, 0)
    masked = (b'\xff' * 8 + ip[:1] + b'\xff' + ip[2:8] + b'\xff' + ip[9:10] + b'\xff\xff' + ip[12:] +
              udp[:6] + b'\xff\xff' + bth[:4] + b'\xff' + bth[5:] + deth + payload)
    icrc = struct.pack('<I', zlib.crc32(masked))
    return mac + STATION_MAC + b'\x08\x00' + ip + udp + bth + deth + payload + icrc


def arp_claim(mac, source, target):
    """An ARP reply: the station has the address `source`."""
    return (mac + STATION_MAC + struct.pack('>HHHBBH', 0x0806, 1, 0x0800, 6, 4, 2) + STATION_MAC + source +
            mac + target)


def make_frame(kind, mac, number):
    target, peer = (socket.inet_aton(IPV4.format(host)) for host in (1, 2))
    if kind == 'poison':
        return arp_claim(mac, peer, target)
    source = socket.inet_aton(ABSENT if kind == 'absent' else IPV4.format(3 + number * 37 % 251))
    return roce_frame(mac, source, target, request(number, source, target), number)


def station(kind, mac):
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    link.bind((INTERFACE, 0))
    link.setblocking(False)
    number, received, begin = 0, 0, time.monotonic()
    print('ready', flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        while number < (time.monotonic() - begin) * RATE[kind]:
            try:
                link.send(make_frame(kind, mac, number))
            except BlockingIOError:
                pass
            number += 1
        while select.select([link], [], [], 0.0005)[0]:
            frame = link.recv(4096)
            received += frame[:6] == STATION_MAC and frame[12:14] == b'\x08\x00'
    print(f'sent {number}')
    print(f'received {received}')


def mac_of(namespace):
    text = namespace.ip('-o', 'link', 'show', INTERFACE)
    return text[text.index('link/ether') + len('link/ether '):].split()[0].replace(':', '')


def read_counts(program):
    """What the station has sent and received."""
    program.process.stdin.close()
    if program.wait(10):
        raise Failure(program.describe())
    words = program.output().split()
    return int(words[words.index('sent') + 1]), int(words[words.index('received') + 1])


def connect(server, client, number, limit=math.inf):
    """Returns the time that rping takes."""
    begin = time.monotonic()
    check_pair(server, client, SERVER, CLIENT, IPV4.format(number))
    took = time.monotonic() - begin
    print(f'rping took {took:.2f} s')
    if took > limit:
        raise Failure(f'rping took {took:.1f} s, more than {limit:.1f} s')
    return took


def run():
    build, kind, way = sys.argv[1:]
    if not shutil.which('rping'):
        skip('rping is not installed')
    with Ethernet(build, [1500] * 2, way_arguments(way)) as net:
        a, b = net.hosts
        for host in net.hosts:
            until(20, lambda h=host: 'PORT_ACTIVE' in h.run('ibv_devinfo'), lambda: 'no link')
        limit = SECONDS + TIMES * max(connect(a, b, 1), connect(b, a, 2))
        # The station shares the interface of host b.
        third = b.spawn([sys.executable, __file__, '--station', kind, mac_of(net.namespaces[0])],
                        stdin=-1)
        until(20, lambda: 'ready' in third.output(), third.describe)
        time.sleep(1.5)  # the kernel believes an ARP reply only a second after the last change
        for _ in range(3):
            connect(a, b, 1, limit)
            connect(b, a, 2, limit)
        sent, received = read_counts(third)
        print(f'the station sent {sent} and received {received}')
        if sent < RATE[kind]:
            raise Failure(f'the station sent {sent} frames only')
        # Its own requests are refused to its own MAC; but nothing for a host comes there.
        if (received > 0) == (kind == 'poison'):
            raise Failure(f'the station received {received} RoCE frames')


if __name__ == '__main__':
    if sys.argv[1:2] == ['--station']:
        station(sys.argv[2], bytes.fromhex(sys.argv[3]))
    else:
        main(run)
