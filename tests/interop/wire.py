# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The wire between two stations, which are datagram sockets of QEMU or urxed: captures and drops frames."""
import os
import select
import socket
import struct
import threading
import time

ROCE = b'\x12\xb7'  # UDP port 4791
ROOM = 1 << 16
PCAP_HEADER = struct.pack('<IHHiIII', 0xA1B23C4D, 2, 4, 0, 0, ROOM, 1)  # times in nanoseconds


def is_roce(frame):
    if frame[12:14] == b'\x08\x00':
        return frame[23] == 17 and frame[36:38] == ROCE
    return frame[12:14] == b'\x86\xdd' and frame[20] == 17 and frame[56:58] == ROCE


def mac_text(mac):
    return ':'.join(f'{byte:02x}' for byte in mac)


class End:
    """One end of the wire: the sockets of its station."""

    def __init__(self, here, there):
        self.there = there
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.setblocking(False)
        self.socket.bind(here)

    def send(self, frame):
        try:
            self.socket.sendto(frame, self.there)
        except OSError:
            pass  # the station has ended or its buffer is full: the frame is lost

    def receive(self):
        try:
            return self.socket.recv(ROOM)
        except BlockingIOError:
            return b''


class Wire:
    """
    Carries frames in a thread of its own. Between start_capture() and write() it records RoCE frames with their
    times, and drops the frames whose number, from 1, is in `lost`.
    """

    def __init__(self, ends):
        self.ends = ends
        self.lock = threading.Condition()
        self.frames = []
        self.lost = set()
        self.quiet_since = time.monotonic()
        self.stop, self.stopped = os.pipe()
        self.thread = threading.Thread(target=self.carry, daemon=True)
        self.thread.start()

    def carry(self):
        sockets = {end.socket: end for end in self.ends}
        while True:
            ready = select.select([*sockets, self.stop], [], [])[0]
            if self.stop in ready:
                return
            for one in ready:
                other = self.ends[sockets[one] is self.ends[0]]
                while frame := sockets[one].receive():
                    if not self.loses(frame):
                        other.send(frame)

    def loses(self, frame):
        if not is_roce(frame):
            return False
        with self.lock:
            self.quiet_since = time.monotonic()
            self.frames.append((time.monotonic_ns(), frame))
            self.lock.notify_all()
            return len(self.frames) in self.lost

    def start_capture(self, lost=()):
        with self.lock:
            self.frames = []
            self.lost = set(lost)

    def wait_count(self, number, seconds):
        """Waits for a number of frames; returns the number of all frames."""
        with self.lock:
            self.lock.wait_for(lambda: len(self.frames) >= number, seconds)
            return len(self.frames)

    def wait_quiet(self, seconds):
        """Waits until no frame has arrived for some seconds."""
        while (left := self.quiet_since + seconds - time.monotonic()) > 0:
            time.sleep(left)

    def write(self, path):
        with self.lock, open(path, 'wb') as file:
            file.write(PCAP_HEADER)
            start = self.frames[0][0] if self.frames else 0
            for at, frame in self.frames:
                second, nanosecond = divmod(at - start, 10**9)
                file.write(struct.pack('<IIII', second, nanosecond, len(frame), len(frame)) + frame)

    def mac_of(self, address):
        """The MAC of an address, from captured frames."""
        with self.lock:
            for _, frame in self.frames:
                if address in (frame[26:30], frame[22:38]):
                    return mac_text(frame[6:12])
                if address in (frame[30:34], frame[38:54]):
                    return mac_text(frame[:6])
        return None

    def close(self):
        os.close(self.stopped)
        self.thread.join()
        os.close(self.stop)
        for end in self.ends:
            end.socket.close()
