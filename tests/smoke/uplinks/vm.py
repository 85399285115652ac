#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Virtual machines on the switch of a host with an uplink: the test plays one machine frame by frame; a second
urxed is the other machine, an RDMA host of its own. Argument: the driver of the hosts' uplinks.
"""
import os
import socket
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
import network  # noqa: E402
from host import Failure, Host, Pair, until  # noqa: E402

NAMES = [f'urxev{os.getpid()}{side}' for side in 'ab']
HOST, NEIGHBOUR, MACHINE, RDMA_MACHINE = ('192.0.2.%d' % n for n in (1, 2, 50, 60))
MAC, OTHER_MAC = bytes.fromhex('525400123456'), bytes.fromhex('525400123457')
BROADCAST = b'\xff' * 6
ARP, IPV4, LOCAL = 0x0806, 0x0800, 0x88b5
TCP, SYN, ACK = 6, 0x02, 0x10
PORT, MSS, DATA = 4000, 1000, bytes(range(250)) * 40
TCP_CLIENT = f"""
import socket
with socket.create_connection(('{MACHINE}', {PORT})) as connection:
    connection.sendall(bytes(range(250)) * 40)
    connection.recv(1)
"""


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


def ipv4_header(protocol, length, to):
    header = struct.pack('!BBHHHBBH4s4s', 0x45, 0, 20 + length, 0, 0, 64, protocol, 0,
                         socket.inet_aton(MACHINE), socket.inet_aton(to))
    return header[:10] + struct.pack('!H', checksum(header)) + header[12:]


def ping(machine, mac, address):
    """The neighbour's kernel answers through the uplink to the machine's MAC."""
    echo = struct.pack('!BBHHH', 8, 0, 0, 7, 1) + b'urxe' * 4
    echo = echo[:2] + struct.pack('!H', checksum(echo)) + echo[4:]
    machine.send(mac, IPV4, ipv4_header(1, len(echo), address) + echo)
    machine.receive(IPV4, lambda frame: frame[23] == 1 and frame[34] == 0 and frame[:6] == MAC)


def tcp_checksum(addresses, segment):
    pseudo = addresses + struct.pack('!HH', TCP, len(segment))
    return checksum(pseudo + segment + bytes(len(segment) % 2))


def send_tcp(machine, mac, address, port, flags, sequence, acknowledged):
    """A segment without data, with the MSS if it is a SYN."""
    option = struct.pack('!BBH', 2, 4, MSS) if flags & SYN else b''
    segment = struct.pack('!HHIIBBHHH', PORT, port, sequence, acknowledged, (5 + len(option) // 4) << 4,
                          flags, 60000, 0, 0) + option
    total = tcp_checksum(socket.inet_aton(MACHINE) + socket.inet_aton(address), segment)
    segment = segment[:16] + struct.pack('!H', total) + segment[18:]
    machine.send(mac, IPV4, ipv4_header(TCP, len(segment), address) + segment)


def receive_tcp(machine, flags):
    """The source port, sequence number and data of the next segment with these flags."""
    while True:
        frame = machine.receive(IPV4, lambda frame: frame[23] == TCP and frame[:6] == MAC)
        packet = frame[14:14 + struct.unpack('!H', frame[16:18])[0]]
        segment = packet[20:]
        if checksum(packet[:20]) or tcp_checksum(packet[12:20], segment):
            raise Failure(f'wrong checksum in {frame.hex()}')
        if segment[13] & (SYN | ACK) == flags:
            port, _, sequence = struct.unpack('!HHI', segment[:8])
            return port, sequence, segment[(segment[12] >> 4) * 4:]


def receive_data(machine, mac, address):
    """The machine's part of the connection: it never acknowledges the data."""
    port, first, _ = receive_tcp(machine, SYN)
    send_tcp(machine, mac, address, port, SYN | ACK, 0, first + 1)
    received = {}
    while sum(map(len, received.values())) < len(DATA):
        _, sequence, data = receive_tcp(machine, ACK)
        if len(data) > MSS:
            raise Failure(f'a segment of {len(data)} bytes, longer than the MSS')
        received[sequence - first - 1 & 0xffffffff] = data
    return b''.join(received[at] for at in sorted(received))


def check_tcp(machine, mac, address):
    """
    The neighbour's kernel leaves checksums to its interface, and sends ten segments as one packet. The machine gets
    the frames that a NIC would send.
    """
    network.ip('-n', NAMES[1], 'neigh', 'replace', MACHINE, 'lladdr', MAC.hex(':'), 'dev', 'eth0')
    with subprocess.Popen(network.inside(NAMES[1]) + [sys.executable, '-c', TCP_CLIENT]) as client:
        try:
            if receive_data(machine, mac, address) != DATA:
                raise Failure('the data of the TCP connection is wrong')
        finally:
            client.kill()


def check_frames(paths):
    machine, other = Machine(paths[0], MAC), Machine(paths[1], OTHER_MAC)
    if machine.who_has(HOST) != mac_of(NAMES[0]):
        raise Failure('a wrong MAC answers for the host')
    neighbour = machine.who_has(NEIGHBOUR)
    if neighbour != mac_of(NAMES[1]):
        raise Failure('a wrong MAC answers for the neighbour')
    ping(machine, neighbour, NEIGHBOUR)
    check_tcp(machine, neighbour, NEIGHBOUR)
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
    build, kind = sys.argv[1:]
    if kind == 'af_xdp':
        network.require_af_xdp()
    uplink = ['--uplink', f'{kind}:eth0']
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
