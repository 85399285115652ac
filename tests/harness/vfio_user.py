# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A vfio-user client, and a vmxnet3 driver with one queue each way: what QEMU and a guest do, by hand."""
import array
import mmap
import os
import select
import socket
import struct

from host import BUSY, Failure, until

VERSION = 1
DMA_MAP = 2
SET_IRQS = 8
REGION_READ = 9
REGION_WRITE = 10
DEVICE_RESET = 13
CONFIG_REGION = 7
PCI_COMMAND = 4
MSIX_INDEX = 2
TRIGGER_WITH_EVENTFDS = 0x24
HEADER = struct.Struct('<HHIII')  # id, command, size, flags, error
ACCESS = struct.Struct('<QII')  # offset, region, count


class Client:
    """A connection to a function."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20 * BUSY)
        self.socket.connect(path)
        self.id = 0

    def receive(self, size):
        data = b''
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise Failure('the device process closed the connection')
            data += part
        return data

    def ask(self, command, body=b'', fds=()):
        """Sends a command; returns the body of the reply, which must be no error."""
        self.id += 1
        message = HEADER.pack(self.id, command, HEADER.size + len(body), 0, 0) + body
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))] if fds else []
        self.socket.sendmsg([message], control)
        number, _, size, _, error = HEADER.unpack(self.receive(HEADER.size))
        if error or number != self.id:
            raise Failure(f'command {command}: reply {number}, {os.strerror(error)}')
        return self.receive(size - HEADER.size)

    def greet(self):
        return self.ask(VERSION, b'\0\0\0\0{"capabilities":{"max_msg_fds":8}}\0')

    def map(self, address, memory, size):
        self.ask(DMA_MAP, struct.pack('<IIQQQ', 32, 3, 0, address, size), [memory])

    def set_eventfds(self, fds):
        self.ask(SET_IRQS, struct.pack('<IIIII', 20, TRIGGER_WITH_EVENTFDS, MSIX_INDEX, 0, len(fds)), fds)

    def read(self, region, offset, size=4):
        return int.from_bytes(self.ask(REGION_READ, ACCESS.pack(offset, region, size))[ACCESS.size:], 'little')

    def write(self, region, offset, value, size=4):
        self.ask(REGION_WRITE, ACCESS.pack(offset, region, size) + value.to_bytes(size, 'little'))

    def set_master(self):
        """Accesses to the BARs and to memory, as pci_enable_device and pci_set_master permit them."""
        self.write(CONFIG_REGION, PCI_COMMAND, 6, 2)

    def reset(self):
        self.ask(DEVICE_RESET)

    def close(self):
        self.socket.close()


class Vmxnet3:
    """A driver with one transmit and one receive queue, in memory of its own at guest address 1 MiB."""

    BASE = 1 << 20
    SIZE = 1 << 20
    RING = 32
    BUFFER = 2048
    MTU = 1500
    # Offsets in the memory.
    SHARED, QUEUES, TX, TX_COMP, RX, RX_COMP, BUFFERS, TX_FRAME = (
        0x0, 0x1000, 0x2000, 0x3000, 0x4000, 0x5000, 0x10000, 0x80000)
    # Registers of BAR1, and commands.
    DSAL, DSAH, CMD = 0x10, 0x18, 0x20
    ACTIVATE, GET_LINK = 0xcafe0000, 0xf00d0002
    TXPROD = 0x600

    def __init__(self, path):
        self.client = Client(path)
        self.client.greet()
        self.fd = os.memfd_create('guest')
        os.ftruncate(self.fd, self.SIZE)
        self.memory = mmap.mmap(self.fd, self.SIZE)
        self.client.map(self.BASE, self.fd, self.SIZE)
        self.events = os.eventfd(0, os.EFD_NONBLOCK)
        self.client.set_eventfds([self.events])
        self.client.set_master()
        self.sent = self.received = 0
        self.activate()

    def put(self, offset, form, *values):
        struct.pack_into('<' + form, self.memory, offset, *values)

    def get(self, offset, form):
        return struct.unpack_from('<' + form, self.memory, offset)

    def fill_queues(self):
        """Queue descriptors and receive descriptors; all rings are on their first lap."""
        self.put(self.QUEUES + 16, 'QQQ', self.BASE + self.TX, 0, self.BASE + self.TX_COMP)
        self.put(self.QUEUES + 56, 'III', self.RING, 0, self.RING)
        rx = self.QUEUES + 256
        self.put(rx + 16, 'QQQ', self.BASE + self.RX, 0, self.BASE + self.RX_COMP)
        self.put(rx + 56, 'III', self.RING, 0, self.RING)
        for i in range(self.RING):
            self.put(self.RX + 16 * i, 'QI', self.BASE + self.BUFFERS + i * self.BUFFER, self.BUFFER | 1 << 31)

    def activate(self):
        self.fill_queues()
        self.put(self.SHARED, 'I', 3133079265)
        self.put(self.SHARED + 40, 'Q', self.BASE + self.QUEUES)
        self.put(self.SHARED + 56, 'I', self.MTU)
        self.put(self.SHARED + 62, 'BB', 1, 1)
        # Masked after each interrupt, one vector, which is also that of events.
        self.put(self.SHARED + 80, 'BBB', 1, 1, 0)
        self.put(self.SHARED + 120, 'I', 0x1f)
        self.client.write(1, self.DSAL, self.BASE)
        self.client.write(1, self.DSAH, 0)
        if self.command(self.ACTIVATE):
            raise Failure('the device refuses the configuration')
        self.client.write(0, 0, 0)

    def command(self, number):
        self.client.write(1, self.CMD, number)
        return self.client.read(1, self.CMD)

    def link_is_up(self):
        return bool(self.command(self.GET_LINK) & 1)

    def send(self, frame):
        """Sends a frame; the ring must not wrap."""
        at = self.sent
        self.sent += 1
        self.memory[self.TX_FRAME:self.TX_FRAME + len(frame)] = frame
        self.put(self.TX + 16 * at, 'QII', self.BASE + self.TX_FRAME, len(frame) | 1 << 14, 3 << 12)
        self.client.write(0, self.TXPROD, self.sent)
        until(10, lambda: self.get(self.TX_COMP + 16 * at + 12, 'I')[0] >> 31, lambda: 'a sent frame is not completed')

    def receive(self, seconds=10):
        """The next received frame; None: none within the time. Sleeps until an interrupt."""
        at = self.RX_COMP + 16 * self.received
        while not self.get(at + 12, 'I')[0] >> 31:
            # Unmasked, as after each poll of a driver.
            self.client.write(0, 0, 0)
            if self.get(at + 12, 'I')[0] >> 31:
                break
            if not select.select([self.events], [], [], seconds * BUSY)[0]:
                return None
            os.eventfd_read(self.events)
        self.received += 1
        index, _, length = self.get(at, 'III')
        start = self.BUFFERS + (index & 0xfff) * self.BUFFER
        return bytes(self.memory[start:start + (length & 0x3fff)])

    def close(self):
        self.client.close()
        os.close(self.events)
        os.close(self.fd)
