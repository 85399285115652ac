#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
The device process of a virtual machine is replaced ten times while the machine (conversing_vm.c) exchanges messages
with ibv_rc_pingpong on another host, and on its own host. Replacements that fail leave the running process in place.
"""
import array
import os
import re
import signal
import socket
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from host import Failure, until  # noqa: E402
from migrating_vm import MAC, SIZE, mac_of, start_device, two_hosts  # noqa: E402
from network import run  # noqa: E402

NAMES = [f'replace{os.getpid()}{side}' for side in 'ab']
ADDRESSES = ['10.0.0.1', '10.0.0.2']
REPLACEMENTS, SECONDS, PORT = 10, 30, 18515
VERSION, PACKET = 1, '=IiI'  # of replace/channel.c


class Device:
    """The device process at a path, and those that take its place."""

    def __init__(self, host, doorbells):
        self.host = host
        self.options = ['--doorbells', doorbells]
        self.process, self.path = start_device(host, *self.options)

    def start_other(self, *options):
        return self.host.spawn([self.host.urxe, 'vm', '--run-dir', self.host.run_dir, '--socket', self.path,
                                '--take-over', '--mac', MAC, *self.options, *options])

    def replace(self):
        new = self.start_other()
        if self.process.wait(SECONDS):
            raise Failure(f'not replaced: {self.process.describe()}\n{new.describe()}')
        self.process = new

    def refuse(self, sentence, *options):
        """Another process with other options ends with an error."""
        new = self.start_other(*options)
        if new.wait(SECONDS) != 1 or sentence not in new.errors():
            raise Failure(f'no refusal: {new.describe()}')
        self.expect_alive()

    def expect_alive(self):
        if not self.process.running():
            raise Failure(f'ended: {self.process.describe()}')

    def connect(self):
        one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        one.settimeout(SECONDS)
        one.connect(f'{self.path}.replace')
        return one

    def ask(self, one, data):
        """Sends a packet, and receives all up to the end; returns the status of the last packet."""
        one.send(data)
        status = None
        while (answer := receive(one)):
            status = struct.unpack(PACKET, answer)[1]
        return status


def receive(one):
    """A packet, whose descriptors are closed."""
    data, controls, _, _ = one.recvmsg(100, 1000)
    for _, _, content in controls:
        fds = array.array('i')
        fds.frombytes(content)
        for fd in fds:
            os.close(fd)
    return data


class Conversation:
    """The machine and its peer."""

    def __init__(self, device, peer, number, doorbells):
        gid = peer.gid(ADDRESSES[number])
        self.peer = peer.start('ibv_rc_pingpong', '-g', str(gid), '-s', str(SIZE), '-n', '1000000', '-p', str(PORT))
        # The dialog of ibv_rc_pingpong is in the peer's namespace.
        self.machine = peer.spawn([os.path.join(BUILD, 'tests/hosts/conversing_vm'), device.path, doorbells,
                                   mac_of(NAMES[number]), str(number + 1), str(PORT), str(SIZE)])
        self.go_on()

    def messages(self):
        return int((re.findall(r'^(\d+) messages', self.machine.output(), re.MULTILINE) or ['0'])[-1])

    def go_on(self):
        """The machine exchanges more messages."""
        before = self.messages()
        until(SECONDS, lambda: self.messages() > before + 20 or not self.machine.running(), self.describe)
        if not self.machine.running():
            raise Failure(self.describe())

    def describe(self):
        return f'{self.machine.describe()}\n{self.peer.describe()}'

    def finish(self):
        self.machine.kill(signal.SIGTERM)
        if self.machine.wait(SECONDS) or 'in RTS' not in self.machine.output():
            raise Failure(self.describe())
        self.peer.kill()
        return self.messages()


def check_failures(device, talk):
    """The running process goes on, and can be replaced later."""
    device.refuse('another --mac', '--mac', '02:00:00:00:01:10')
    device.refuse('another --mtu', '--mtu', '1500')
    device.refuse('another --roce', '--roce', 'v1')
    device.refuse('another --doorbells', '--doorbells', {'mapped': 'trapped', 'trapped': 'mapped'}[device.options[1]])
    with device.connect() as one:
        if device.ask(one, struct.pack(PACKET, VERSION + 1, 0, 0)) != -71:  # EPROTO
            raise Failure('it accepts another version')
    with device.connect() as one:
        if device.ask(one, b'x') != -71:
            raise Failure('it accepts a short packet')
    talk.go_on()
    # A process that ends, or refuses, when it has the whole bundle; one that never answers.
    for answer in None, -22, 'silence':
        with device.connect() as one:
            one.send(struct.pack(PACKET, VERSION, 0, 0))
            left = struct.unpack(PACKET, receive(one))[2]
            while left > 0:
                receive(one)
                left -= 2
            if answer == 'silence':
                if receive(one) and receive(one):
                    raise Failure('it does not give up')
            elif answer:
                one.send(struct.pack(PACKET, VERSION, answer, 0))
        talk.go_on()
    device.expect_alive()


def expect_copies(host):
    """The peer on the machine's host still copies to and from the machine's memory."""
    qps = [qp for qp in host.show('qp')['qps'] if qp['state'] == 'RTS']
    if len(qps) != 2 or not all(qp['memory'] for qp in qps):
        raise Failure(f'no copies: {qps}')


def wait_shown(host, device):
    """The new process tells urxed its queue pair, which is connected."""
    def shown():
        return [qp for qp in host.show('qp')['qps'] if qp['pid'] == device.process.process.pid and qp['state'] == 'RTS']
    until(SECONDS, shown, lambda: f'not shown: {host.show("qp")}')


def check_peer(hosts, number, doorbells):
    device = Device(hosts[0], doorbells)
    talk = Conversation(device, hosts[number], number, doorbells)
    check_failures(device, talk)
    if number == 0:
        expect_copies(hosts[0])
    for _ in range(REPLACEMENTS):
        device.replace()
        wait_shown(hosts[0], device)
        talk.go_on()
    print(f'{REPLACEMENTS} replacements, {talk.finish()} messages with the peer on host {number}')
    device.process.kill(signal.SIGTERM)
    if device.process.wait(SECONDS) or os.path.exists(device.path) or os.path.exists(f'{device.path}.replace'):
        raise Failure(f'the sockets remain: {device.process.describe()}')


def check():
    with two_hosts(NAMES, ADDRESSES) as hosts:
        for number in (1, 0):
            check_peer(hosts, number, sys.argv[2])


BUILD = sys.argv[1]
if __name__ == '__main__':
    run(check, NAMES)
