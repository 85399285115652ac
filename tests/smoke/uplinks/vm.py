#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Virtual machines on the switch of a host with an uplink: the test plays one machine frame by frame; a second
urxed is the other machine, an RDMA host of its own.
"""
import os
import socket
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
import network  # noqa: E402
from host import Failure, Host, Pair, until  # noqa: E402

NAMES = [f'urxev{os.getpid()}{side}' for side in 'ab']
HOST, NEIGHBOUR, MACHINE, RDMA_MACHINE = ('192.0.2.%d' % n for n in (1, 2, 50, 60))
MAC, OTHER_MAC = bytes.fromhex('525400123456'), bytes.fromhex('525400123457')
BROADCAST = b'\xff' * 6
ARP, IPV4, LOCAL = 0x0806, 0x0800, 0x88b5


def mac_of(name):
    text = network.ip('-n', name, '-o', 'link', 'show', 'eth0').stdout
    return bytes.fromhex(text.split('link/ether ')[1].split()[0].replace(':', ''))


class Machine:
    """A virtual machine's NIC on QEMU's stream: each frame follows its length."""

    def __init__(self, path, mac):
        self.mac = mac
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(10)
        self.socket.connect(path)

    def send(self, to, ethertype, payload):
        frame = (to + self.mac + struct.pack('!H', ethertype) + payload).ljust(60, b'\0')
        self.socket.sendall(struct.pack('!I', len(frame)) + frame)

    def exactly(self, n):
        data = b''
        while len(data) < n:
            part = self.socket.recv(n - len(data))
            if not part:
                raise Failure('urxed has hung up')
            data += part
        return data

    def receive(self, ethertype, wanted=lambda frame: True):
        """The next frame of an EtherType; ignores frames that the kernels send on their own."""
        while True:
            frame = self.exactly(*struct.unpack('!I', self.exactly(4)))
            if frame[12:14] == struct.pack('!H', ethertype) and wanted(frame):
                return frame

    def who_has(self, address):
        """Sends an ARP request; returns the MAC of the answer."""
        self.send(BROADCAST, ARP, struct.pack('!HHBBH', 1, IPV4, 6, 4, 1) + self.mac +
                  socket.inet_aton(MACHINE) + bytes(6) + socket.inet_aton(address))
        answer = self.receive(ARP, lambda frame: frame[21] == 2 and
                              frame[28:32] == socket.inet_aton(address))
        if answer[:6] != self.mac:
            raise Failure(f'the answer for {address} is for {answer[:6].hex()}')
        return answer[22:28]


def checksum(data):
    total = sum(struct.unpack(f'!{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def ping(machine, mac, address):
    """The neighbour's kernel answers through the uplink to the machine's MAC."""
    echo = struct.pack('!BBHHH', 8, 0, 0, 7, 1) + b'urxe' * 4
    echo = echo[:2] + struct.pack('!H', checksum(echo)) + echo[4:]
    header = struct.pack('!BBHHHBBH4s4s', 0x45, 0, 20 + len(echo), 0, 0, 64, 1, 0,
                         socket.inet_aton(MACHINE), socket.inet_aton(address))
    header = header[:10] + struct.pack('!H', checksum(header)) + header[12:]
    machine.send(mac, IPV4, header + echo)
    machine.receive(IPV4, lambda frame: frame[23] == 1 and frame[34] == 0 and frame[:6] == MAC)


def check_frames(paths):
    machine, other = Machine(paths[0], MAC), Machine(paths[1], OTHER_MAC)
    if machine.who_has(HOST) != mac_of(NAMES[0]):
        raise Failure('a wrong MAC answers for the host')
    neighbour = machine.who_has(NEIGHBOUR)
    if neighbour != mac_of(NAMES[1]):
        raise Failure('a wrong MAC answers for the neighbour')
    ping(machine, neighbour, NEIGHBOUR)
    other.send(MAC, LOCAL, b'to the other machine')
    if machine.receive(LOCAL)[6:12] != OTHER_MAC:
        raise Failure('a frame changed on its way to the other machine')
    machine.send(OTHER_MAC, LOCAL, b'and back')
    other.receive(LOCAL)


def check_rdma(build, path, host, neighbour):
    """Runs programs between a process and a machine of one host, then through the uplink."""
    with Host(build, prefix=network.inside(NAMES[0]), arguments=['--uplink', f'qemu:{path},connect',
                                                 '--address', f'{RDMA_MACHINE}/24']) as machine:
        gid = machine.gid(RDMA_MACHINE)
        for argv in (['ibv_rc_pingpong', '-c', '-n', '200'], ['ibv_ud_pingpong', '-n', '200'],
                     ['ib_write_bw', '-F', '-n', '500']):
            Pair(host, machine, argv, host.gid(HOST), client_gid=gid).finish(60)
            Pair(neighbour, machine, argv, neighbour.gid(NEIGHBOUR), address=NEIGHBOUR,
                 client_gid=gid).finish(60)


def run():
    build = sys.argv[1]
    uplink = ['--uplink', 'af_packet:eth0']
    with Host(build, prefix=network.inside(NAMES[1]), arguments=uplink) as neighbour:
        paths = [os.path.join(neighbour.top, name) for name in ('one', 'two', 'three')]
        arguments = list(uplink)
        for path in paths:
            arguments += ['--uplink', f'qemu:{path}']
        # The second machine has a MAC of its own.
        arguments += ['--fdb', f'52:54:00:12:34:57=qemu:{paths[1]}']
        with Host(build, prefix=network.inside(NAMES[0]), arguments=arguments) as host:
            until(5, lambda: all(map(os.path.exists, paths)), lambda: 'no sockets for VMs')
            check_frames(paths)
            check_rdma(build, paths[2], host, neighbour)


network.run(run, NAMES)
