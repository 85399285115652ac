#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Records the captures of fixtures with a line `capture recorded A B KERNEL`; A and B are linux-rxe or urxe. Real
devices execute the lines of the text in order, and this program is the wire between them. Linux' rdma_rxe runs in a
virtual machine, urxe on this machine. The program writes the devices' numbers into the text, and makes expected.json.
With programs.txt in place of fixture.txt, its programs `client` and `server` run on A and B.

    record.py BUILD [FIXTURE...]     FIXTURE: folders below pcap-fixtures/; without one, all fixtures
"""
import contextlib
import glob
import json
import os
import socket
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../guests'), os.path.join(HERE, '../replay')]
from guest import Guest  # noqa: E402
from host import Failure, Host, free_port, main, wait_listening  # noqa: E402
from image import Image  # noqa: E402
import dissect  # noqa: E402
from text import Text  # noqa: E402
from wire import End, Wire  # noqa: E402

FIXTURES = os.path.join(HERE, '../../pcap-fixtures')
FOLDER = 'tests/interop'
OWN = ['station', 'refuse']  # programs of tests/interop, beside Debian's
SIDES = 'ab'
IPV4 = {'a': '10.77.0.10', 'b': '10.77.0.11'}
IPV6 = {'a': 'fd77::10', 'b': 'fd77::11'}
MAC = {'a': '52:54:00:77:00:0a', 'b': '52:54:00:77:00:0b'}
MTU = 4200
SECONDS = 60  # timeout of a step
QUIET = 0.5   # seconds without a frame after which no frame or retry is in flight
LARGEST = 200_000
ATTEMPTS = 20
FIXTURE = 'tests/fixture/fixture'
PROGRAMS = 'programs.txt'  # describes two programs instead of steps


class Linux:
    """Linux' rdma_rxe in a virtual machine."""

    def __init__(self, build, path, side):
        image = Image(build, [os.path.join(build, FOLDER, name) for name in OWN])
        self.guest = Guest(image, ['-netdev', f'dgram,id=n0,local.type=unix,local.path={path}.nic,'
                                   f'remote.type=unix,remote.path={path}'],
                           mac=MAC[side], name=side)
        try:
            self.set_up(side)
        except BaseException:
            self.guest.close()
            raise

    def set_up(self, side):
        self.guest.make_rxe(IPV4[side], MTU, IPV6[side])
        self.kernel = self.guest.run('uname -r').strip()

    @staticmethod
    def end(path):
        return End(path, path + '.nic')

    def meet(self, other):
        """Waits until the other station answers."""
        self.guest.wait_neighbour(IPV4[other])

    def start(self, side):
        job = self.guest.start(f'station {side} rxe0 {self.guest.port}')
        self.guest.wait_listening(self.guest.port)
        return job, self.guest.port

    def launch(self, command):
        return self.guest.start(command)

    def close(self):
        self.guest.close()


class Urxe:
    """urxe on this machine, whose uplink is the wire."""

    kernel = None

    def __init__(self, build, path, side):
        self.host = Host(build, arguments=['--uplink', f'qemu:{path},dgram',
                                           '--address', f'{IPV4[side]}/24',
                                           '--address', f'{IPV6[side]}/64'])
        self.host.add_path(os.path.join(build, FOLDER))

    @staticmethod
    def end(path):
        return End(path + '.qemu', path)

    def meet(self, other):
        """Does nothing: Linux at the other end waits."""

    def start(self, side):
        port = free_port()
        job = self.host.start('station', side, 'urxe0', str(port))
        wait_listening(job, port)
        return job, port

    def launch(self, command):
        return self.host.start(*command.split())

    def close(self):
        self.host.__exit__(None)


STACKS = {'linux-rxe': Linux, 'urxe': Urxe}


class Link:
    """Two stations and the wire between them."""

    def __init__(self, build, stacks, folder):
        self.build = build
        paths = [os.path.join(folder, side) for side in SIDES]
        self.stack = contextlib.ExitStack()
        kinds = [STACKS[name] for name in stacks]
        self.wire = Wire([kind.end(path) for kind, path in zip(kinds, paths)])
        self.stack.callback(self.wire.close)
        self.ends = {}
        try:
            for side, kind, path in zip(SIDES, kinds, paths):
                self.ends[side] = kind(build, path, side)
                self.stack.callback(self.ends[side].close)
            for side, other in ('ab', 'ba'):
                self.ends[side].meet(other)
        except BaseException:
            self.stack.close()
            raise

    def kernel(self):
        return next(end.kernel for end in self.ends.values() if end.kernel)

    def close(self):
        self.stack.close()


class Station:
    """A station of one fixture, played by station.c."""

    def __init__(self, end, side):
        self.job, port = end.start(side)
        self.socket = socket.create_connection(('127.0.0.1', port), timeout=2 * SECONDS)
        self.stream = self.socket.makefile('rw', encoding='utf-8', newline='\n')

    def ask(self, command):
        self.stream.write(command)
        self.stream.flush()
        answer = self.stream.readline().strip()
        if answer.split(' ')[0] != 'ok':
            raise Failure(f'{answer or "ended"}: {self.job.describe()}')
        return answer

    def give(self, text):
        data = text.bytes().decode()
        return self.ask(f'text {len(data.encode())}\n{data}')

    def numbers(self, text):
        """QPNs, keys of regions, keys of windows."""
        _, rest = self.give(text).split(' qpn', 1)
        qpns, rest = rest.split(' mr', 1)
        keys, windows = rest.split(' mw', 1)
        return qpns.split(), keys.split(), windows.split()

    def close(self):
        self.stream.close()
        self.socket.close()
        self.job.wait(SECONDS)


def run_lines(text, wire, stations):
    """Executes the text's lines on the stations, and writes the numbers of frames into the text."""
    passed = 0
    for number in range(1, len(text.lines) + 1):
        words = text.words(number)
        if text.deed(number):
            stations[text.deed(number)].ask(f'line {number}\n')
        elif words[:1] == ['frames'] and words[1] != 'rest':
            wanted = passed + int(words[1])
            count = wire.wait_count(wanted, SECONDS)
            if count < wanted:
                raise Failure(f'line {number}: {count - passed} frames came, not {words[1]}')
            text.change(number, 'frames', count - passed)
            passed = count


def record_programs(link, text):
    """Runs a program on each side, and starts a client that came too early again."""
    server = None
    for number in text.numbered('server'):
        server = link.ends['b'].launch(' '.join(text.words(number)[1:]))
    number, = text.numbered('client')
    for _ in range(ATTEMPTS):
        link.wire.start_capture()
        client = link.ends['a'].launch(' '.join(text.words(number)[1:]))
        status = client.wait(SECONDS)
        if not server or not status:
            break
    link.wire.wait_quiet(QUIET)
    if server and (status or server.wait(SECONDS)):
        raise Failure(f'{client.describe()}\n{server.describe()}')


def record_steps(link, text):
    stations = {}
    try:
        for side in SIDES:
            stations[side] = Station(link.ends[side], side)
        for side in SIDES:
            text.set_numbers(side, *stations[side].numbers(text))
        link.wire.start_capture(text.lost())
        for side in SIDES:
            stations[side].give(text)
        run_lines(text, link.wire, stations)
        link.wire.wait_quiet(QUIET)
    finally:
        for station in stations.values():
            station.close()
    for side in SIDES:
        number, packed = text.address(side)
        mac = link.wire.mac_of(packed)
        if mac:
            text.change(number, 'mac', mac)


def write(link, text, path):
    text.set_kernel(link.kernel())
    text.write(path)
    keep(link, os.path.dirname(path))


def why_not_played(build, folder):
    """The output of the failed replay; empty if the fixture plays."""
    played = subprocess.run([os.path.join(build, FIXTURE), 'play', os.path.abspath(folder)],
                            stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True, check=False)
    return played.returncode and played.stdout


def record(link, path):
    """Records a fixture, again if it does not play: the number of urxe's retries depends on the machine's speed."""
    if os.path.basename(path) == PROGRAMS:
        text = Text(path)
        record_programs(link, text)
        write(link, text, path)
        return
    with open(path, 'rb') as file:
        before = file.read()
    for _ in range(ATTEMPTS):
        text = Text(path)
        record_steps(link, text)
        write(link, text, path)
        why_not = why_not_played(link.build, os.path.dirname(path))
        if not why_not:
            return
        with open(path, 'wb') as file:
            file.write(before)
    raise Failure(f'recorded {ATTEMPTS} times, it does not play:\n{why_not}')


def keep(link, folder):
    capture = os.path.join(folder, 'capture.pcap')
    link.wire.write(capture)
    with open(capture, 'rb') as file:
        data = file.read()
    if len(data) > LARGEST:
        raise Failure(f'{capture} is too large: {len(data)} bytes')
    with open(os.path.join(folder, 'expected.json'), 'w', encoding='utf-8') as file:
        json.dump(dissect.dissect(data), file, indent=1)
        file.write('\n')


def recorded(names):
    """(stacks, path of the text) of the recorded fixtures."""
    for text in 'fixture.txt', PROGRAMS:
        for path in sorted(glob.glob(os.path.join(FIXTURES, '*/*', text))):
            stacks = Text(path).stacks()
            if stacks and (not names or name_of(path) in names):
                yield tuple(stacks), path


def name_of(path):
    return os.path.relpath(os.path.dirname(path), FIXTURES)


def record_all(link, paths):
    """Records fixtures; returns the number of failures."""
    failed = 0
    for path in paths:
        try:
            record(link, path)
            print(f'{name_of(path)}: {len(link.wire.frames)} frames', flush=True)
        except Failure as failure:
            failed += 1
            print(f'{name_of(path)}: {failure}', flush=True)
    return failed


def run():
    build, *names = sys.argv[1:]
    texts = list(recorded(names))
    failed = 0
    for stacks in sorted({stacks for stacks, _ in texts}):
        with tempfile.TemporaryDirectory(prefix='record-') as scratch:
            link = Link(build, stacks, scratch)
            try:
                failed += record_all(link, [path for found, path in texts if found == stacks])
            finally:
                link.close()
    if failed or not texts:
        raise Failure(f'{failed} of {len(texts)} fixtures were not recorded')


if __name__ == '__main__':
    main(run)
