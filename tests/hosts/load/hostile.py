#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Sends frames of a hostile station to an interface's cable, until it is killed: ARP and neighbour discovery from random
addresses, connection requests from absent hosts, RoCE with a right and with a wrong ICRC to random queue pairs, damaged
headers, and random bytes. Source addresses are never those of the two hosts, so no frame is a forgery that RoCE itself
could not detect.
"""
import argparse
import random
import socket
import struct
import time
import zlib

ROCE_PORT = 4791
ETHERTYPE_IPV4, ETHERTYPE_ARP, ETHERTYPE_IPV6, ETHERTYPE_ROCEV1 = 0x0800, 0x0806, 0x86dd, 0x8915
CM_REQ, CM_REJ, CM_DREQ = 0x10, 0x12, 0x15
UD_SEND_ONLY = 0x64
QP1_QKEY = 0x80010000
FIRST_HOSTILE = 100  # the last byte of the least source address


def checksum(data):
    total = sum(struct.unpack(f'!{len(data) // 2}H', data))
    total = (total & 0xffff) + (total >> 16)
    return ~((total & 0xffff) + (total >> 16)) & 0xffff


def icrc(ip, udp, transport):
    """IBA volume 1, annex A17.3.3: the fields that routers may change count as ones."""
    masked_ip = ip[:1] + b'\xff' + ip[2:8] + b'\xff' + ip[9:10] + b'\xff\xff' + ip[12:]
    masked_udp = udp[:6] + b'\xff\xff'
    masked = masked_ip + masked_udp + transport[:4] + b'\xff' + transport[5:]
    return struct.pack('<I', zlib.crc32(b'\xff' * 8 + masked))


class Station:
    """Makes frames to the host with a MAC address and an IPv4 address."""

    def __init__(self, mac, address, seed):
        self.mac = bytes.fromhex(mac.replace(':', ''))
        self.address = socket.inet_aton(address)
        self.random = random.Random(seed)

    def source_mac(self):
        return b'\x02' + self.random.randbytes(5)

    def source_address(self):
        return self.address[:3] + bytes([self.random.randrange(FIRST_HOSTILE, 255)])

    def ethernet(self, ethertype, payload):
        return self.mac + self.source_mac() + struct.pack('!H', ethertype) + payload

    def roce(self, transport, right):
        """A RoCEv2 packet around a transport header and payload; `right`: with its ICRC."""
        length = 20 + 8 + len(transport) + 4
        ip = struct.pack('!BBHHHBBH4s4s', 0x45, 0, length, 0, 0x4000, 64, 17, 0, self.source_address(), self.address)
        ip = ip[:10] + struct.pack('!H', checksum(ip)) + ip[12:]
        udp = struct.pack('!HHHH', 0xc000 | self.random.randrange(0x4000), ROCE_PORT, length - 20, 0)
        crc = icrc(ip, udp, transport) if right else self.random.randbytes(4)
        return self.ethernet(ETHERTYPE_IPV4, ip + udp + transport + crc)

    def bth(self, opcode, qpn):
        return struct.pack('!BBHII', opcode, 0x40, 0xffff, qpn, self.random.getrandbits(24) | self.random.choice((0, 1 << 31)))

    def to_random_queue_pair(self):
        payload = self.random.randbytes(4 * self.random.randrange(64))
        bth = self.bth(self.random.randrange(256), self.random.randrange(1 << 16))
        return self.roce(bth + payload, self.random.random() < 0.7)

    def connection_message(self):
        """A REQ, REJ or DREQ with random contents behind the MAD header, from an absent host."""
        attribute = self.random.choice((CM_REQ, CM_REQ, CM_REJ, CM_DREQ))
        mad = struct.pack('!BBBBHHQHHI', 1, 7, 2, 3, 0, 0, self.random.getrandbits(64), attribute, 0, 0)
        mad += self.random.randbytes(256 - len(mad))
        deth = struct.pack('!II', QP1_QKEY, 1)
        return self.roce(self.bth(UD_SEND_ONLY, 1) + deth + mad, True)

    def arp(self):
        mac, address = self.source_mac(), self.source_address()
        body = struct.pack('!HHBBH6s4s6s4s', 1, ETHERTYPE_IPV4, 6, 4, self.random.choice((1, 2)), mac, address, self.mac, self.address)
        return self.ethernet(ETHERTYPE_ARP, body + b'\0' * 18)

    def damaged(self):
        frame = bytearray(self.random.choice((self.to_random_queue_pair, self.connection_message, self.arp))())
        for _ in range(self.random.randrange(1, 6)):
            frame[self.random.randrange(12, len(frame))] = self.random.randrange(256)
        return self.spare_hosts(bytes(frame[:self.random.randrange(14, len(frame) + 1)]))

    def noise(self):
        ethertype = self.random.choice((ETHERTYPE_IPV4, ETHERTYPE_ARP, ETHERTYPE_IPV6, ETHERTYPE_ROCEV1, 0x8100))
        return self.spare_hosts(self.ethernet(ethertype, self.random.randbytes(self.random.randrange(1400))))

    def spare_hosts(self, frame):
        """Damage must not make the frame one of the other host: then the sender's address is replaced."""
        if frame[26:29] == self.address[:3] and len(frame) > 29 and frame[29] < FIRST_HOSTILE:
            return frame[:29] + bytes([FIRST_HOSTILE]) + frame[30:]
        return frame

    def frame(self):
        return self.random.choice((self.to_random_queue_pair, self.connection_message, self.arp, self.damaged, self.noise))()


def run():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('interface')
    parser.add_argument('mac', help='of the attacked host')
    parser.add_argument('address', help='of the attacked host, IPv4')
    parser.add_argument('--rate', type=int, default=2000, help='frames per second')
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--frames', type=int, help='end after so many')
    options = parser.parse_args()
    station = Station(options.mac, options.address, options.seed)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as port:
        port.bind((options.interface, 0))
        sent = 0
        while options.frames is None or sent < options.frames:
            for _ in range(max(1, options.rate // 50)):
                try:
                    port.send(station.frame())
                except OSError:
                    pass  # the queue of the interface is full, or the link is down
                sent += 1
            time.sleep(0.02)


if __name__ == '__main__':
    run()
