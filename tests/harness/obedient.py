# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Processes that execute commands of one letter: verbs_reconnect.c and cm_reconnect.c."""
import subprocess

from host import Failure, succeed, until


class Obedient:
    """A process that reports when it has opened the device, and when it has executed a command."""

    def __init__(self, host, path):
        self.program = host.start(path, stdin=subprocess.PIPE)
        self.done = 'open\n'
        self.wait()

    def order(self, letters):
        self.program.process.stdin.write(letters.encode())
        self.program.process.stdin.flush()
        self.done += ''.join(f'{letter}\n' for letter in letters)

    def wait(self):
        def finished():
            if not self.program.running():
                raise Failure(f'has ended: {self.program.describe()}')
            return self.program.output() == self.done
        until(30, finished, lambda: f'does not do as told: {self.program.describe()}')

    def obey(self, letters):
        self.order(letters)
        self.wait()

    def finish(self):
        self.program.process.stdin.close()
        succeed(self.program, 10)
