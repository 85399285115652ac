# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Two programs (tests/smoke/checkpoint/) that are connected; one of them is saved, killed and restored."""
import os
import subprocess
import time

from host import Failure, until

PROGRAM = 'tests/smoke/verbs_checkpoint'
CM_PROGRAM = 'tests/smoke/cm_checkpoint'


class Commanded:
    """A running verbs_checkpoint, or another program of that kind."""

    def __init__(self, host, build, *arguments, program=PROGRAM):
        self.host = host
        self.program = host.start(os.path.join(build, program), *arguments, stdin=subprocess.PIPE)
        self.lines = 0

    def answer(self, seconds=30):
        """The next line of its output."""
        def found():
            if not self.program.running() and self.program.output().count('\n') <= self.lines:
                raise Failure(f'has ended: {self.program.describe()}')
            return self.program.output().count('\n') > self.lines
        until(seconds, found, lambda: f'no answer: {self.program.describe()}')
        self.lines += 1
        return self.program.output().splitlines()[self.lines - 1]

    def order(self, text):
        self.program.process.stdin.write(f'{text}\n'.encode())
        self.program.process.stdin.flush()

    def ask(self, text):
        self.order(text)
        return self.answer()

    def obey(self, text, expected='done'):
        answer = self.ask(text)
        if answer != expected:
            raise Failure(f'{text}: {answer}\n{self.program.describe()}')

    def report(self):
        """For each connection: posted, completed, received, counter."""
        self.order('report')
        line = self.answer()
        # The restored program may be nested in an urxe run of another urxed (checkpoint_hca.py), which urxe tells.
        errors = [error for error in self.program.errors().splitlines() if not error.startswith('urxe: the program has the device of')]
        if 'broken' in line or errors:
            raise Failure(f'wrong contents or completions: {self.program.describe()}')
        return [[int(word) for word in part.split()] for part in line.split(', ')]

    def kill(self):
        self.program.kill()


class Pair:
    """Two programs; the first one is saved and restored."""
    program = PROGRAM

    def __init__(self, build, hosts):
        self.build = build
        self.hosts = hosts
        self.files = [os.path.join(hosts[0].top, name) for name in ('stream', 'memory', 'maps')]
        self.traveller = self.peer = None

    def both(self):
        return self.traveller, self.peer

    def save(self):
        self.traveller.obey('save ' + ' '.join(self.files), 'saved')

    def restore(self, host=None, *options):
        self.traveller = Commanded(host or self.hosts[0], self.build, 'restore', *self.files, *options,
                                   program=self.program)
        answer = self.traveller.answer()
        if answer != 'restored':
            raise Failure(f'{answer}: {self.traveller.program.describe()}')

    def end(self):
        for program in self.both():
            program.obey('close')
            program.program.process.stdin.close()
            if program.program.wait(10):
                raise Failure(program.program.describe())


class CheckpointPair(Pair):
    """The programs exchange messages all the time."""

    def __init__(self, build, hosts, traveller_events=False, gids=('1', '1'), work='', peer_device='urxe0'):
        super().__init__(build, hosts)
        self.sends = work == 'sends'  # else a quarter of the requests of each kind
        options = [work] if work else []
        events = ['events'] if traveller_events else options
        self.traveller = Commanded(hosts[0], build, 'run', 'urxe0', gids[0], '0', *events)
        self.peer = Commanded(hosts[1], build, 'run', peer_device, gids[1], '1', *options)
        addresses = [program.answer() for program in (self.traveller, self.peer)]
        self.traveller.obey(f'connect {addresses[1]}')
        self.peer.obey(f'connect {addresses[0]}')

    def completed(self):
        return [[connection[1] for connection in program.report()] for program in self.both()]

    def progress(self, requests=8):
        """Both programs complete so many more requests on each connection."""
        before = self.completed()
        until(60, lambda: all(count >= first + requests for program, old in zip(self.completed(), before)
                              for count, first in zip(program, old)),
              lambda: f'no progress: {before}, {self.completed()}')

    def drain(self):
        """No request is outstanding, and each message has arrived once."""
        for program in self.both():
            program.obey('pause')

        def drained():
            a, b = [program.report() for program in self.both()]
            return all(posted == completed and other[2:] == self.expected(completed) for ours, theirs in ((a, b), (b, a))
                       for (posted, completed, _, _), other in zip(ours, theirs))
        until(60, drained, lambda: f'lost or doubled: {[program.report() for program in self.both()]}')

    def expected(self, completed):
        """Messages and fetch-and-adds of so many requests."""
        return [completed, 0] if self.sends else [(completed + 3) // 4, completed // 4]

    def quiet(self, program):
        """The program posts nothing more, and all that it has posted is complete."""
        program.obey('pause')
        until(60, lambda: all(posted == completed for posted, completed, _, _ in program.report()),
              lambda: f'requests do not end: {program.report()}')

    def end(self):
        self.drain()
        super().end()


class ConnectedPair(Pair):
    """The programs are connected by rdma_cm; each has a listener. A connection has one number in both."""
    program = CM_PROGRAM

    def __init__(self, build, hosts, addresses):
        super().__init__(build, hosts)
        self.addresses = addresses
        self.traveller, self.peer = [Commanded(host, build, 'run', address, program=CM_PROGRAM)
                                     for host, address in zip(hosts, addresses)]
        for program in self.both():
            if program.answer() != 'ready':
                raise Failure(program.program.describe())
        self.ports = [program.ask('listen') for program in self.both()]

    def begin(self, number, client):
        """The client requests a connection."""
        server = 1 - client
        self.both()[client].obey(f'begin {number} {self.addresses[server]} {self.ports[server]}')

    def finish(self, number, client):
        self.both()[1 - client].order(f'accept {number}')
        self.both()[client].obey(f'await {number}')
        answer = self.both()[1 - client].answer()
        if answer != 'done':
            raise Failure(answer)

    def connect(self, number, client):
        self.begin(number, client)
        self.finish(number, client)

    def exchange(self, numbers):
        """A message each way on each connection."""
        for number in numbers:
            for a, b in (self.both(), self.both()[::-1]):
                a.obey(f'send {number}')
                b.obey(f'receive {number}')

    def quiet(self):
        """Neither program has an event that it did not fetch."""
        for program in self.both():
            program.obey('events', '0')

    def disconnect(self, number, side):
        """One program disconnects; both fetch the event, and destroy the connection."""
        first, second = self.both() if side == 0 else self.both()[::-1]
        first.obey(f'disconnect {number}')
        second.obey(f'disconnected {number}')
        second.obey(f'disconnect {number}')
        first.obey(f'disconnected {number}')
        for program in (first, second):
            program.obey(f'destroy {number}')


def move(pair, pause=0, host=None):
    pair.save()
    pair.traveller.kill()
    time.sleep(pause)
    pair.restore(host)
