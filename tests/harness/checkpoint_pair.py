# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Two programs that exchange messages (tests/smoke/checkpoint/); one of them is saved, killed and restored."""
import os
import subprocess
import time

from host import Failure, until

PROGRAM = 'tests/smoke/verbs_checkpoint'


class Commanded:
    """A running verbs_checkpoint."""

    def __init__(self, host, build, *arguments):
        self.host = host
        self.program = host.start(os.path.join(build, PROGRAM), *arguments, stdin=subprocess.PIPE)
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

    def obey(self, text, expected='done'):
        self.order(text)
        answer = self.answer()
        if answer != expected:
            raise Failure(f'{text}: {answer}\n{self.program.describe()}')

    def report(self):
        """For each connection: posted, completed, received, counter."""
        self.order('report')
        line = self.answer()
        if 'broken' in line or self.program.errors():
            raise Failure(f'wrong contents or completions: {self.program.describe()}')
        return [[int(word) for word in part.split()] for part in line.split(', ')]

    def kill(self):
        self.program.kill()


class CheckpointPair:
    """Two connected programs; the first one is saved and restored."""

    def __init__(self, build, hosts, traveller_events=False, gids=('1', '1')):
        self.build = build
        self.hosts = hosts
        self.files = [os.path.join(hosts[0].top, name) for name in ('stream', 'memory', 'maps')]
        events = ['events'] if traveller_events else []
        self.traveller = Commanded(hosts[0], build, 'run', 'urxe0', gids[0], '0', *events)
        self.peer = Commanded(hosts[1], build, 'run', 'urxe0', gids[1], '1')
        addresses = [program.answer() for program in (self.traveller, self.peer)]
        self.traveller.obey(f'connect {addresses[1]}')
        self.peer.obey(f'connect {addresses[0]}')

    def both(self):
        return self.traveller, self.peer

    def completed(self):
        return [[connection[1] for connection in program.report()] for program in self.both()]

    def progress(self, requests=8):
        """Both programs complete so many more requests on each connection."""
        before = self.completed()
        until(60, lambda: all(count >= first + requests for program, old in zip(self.completed(), before)
                              for count, first in zip(program, old)),
              lambda: f'no progress: {before}, {self.completed()}')

    def save(self):
        self.traveller.obey('save ' + ' '.join(self.files), 'saved')

    def restore(self, host=None, *options):
        self.traveller = Commanded(host or self.hosts[0], self.build, 'restore', *self.files, *options)
        answer = self.traveller.answer()
        if answer != 'restored':
            raise Failure(f'{answer}: {self.traveller.program.describe()}')

    def drain(self):
        """No request is outstanding, and each message has arrived once."""
        for program in self.both():
            program.obey('pause')

        def drained():
            a, b = [program.report() for program in self.both()]
            return all(posted == completed and other[2] == (completed + 3) // 4 and other[3] == completed // 4
                       for ours, theirs in ((a, b), (b, a))
                       for (posted, completed, _, _), other in zip(ours, theirs))
        until(60, drained, lambda: f'lost or doubled: {[program.report() for program in self.both()]}')

    def end(self):
        self.drain()
        for program in self.both():
            program.obey('close')
            program.program.process.stdin.close()
            if program.program.wait(10):
                raise Failure(program.program.describe())


def move(pair, pause=0, host=None):
    pair.save()
    pair.traveller.kill()
    time.sleep(pause)
    pair.restore(host)
