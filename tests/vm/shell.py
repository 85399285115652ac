#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""./dev guest: what its user types gives the expected answers, in one machine and in two."""
import os
import subprocess
import sys
import tempfile

from demo import SWITCH_KEY
from host import BUSY, SKIP, Failure, main, skip, until

DEMO = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'demo.py')
SECONDS = 120
BANDWIDTH = '65536      5000'  # of perftest's row of figures
# The server may need longer than the second that the welcome's command waits.
UNTIL_LISTENING = 'until grep -q :4853 /proc/net/tcp*; do sleep 1; done'  # port 18515, perftest's default
# Number of machines: the option, and (text to wait for, keys) in turn.
DIALOGUES = {
    'one': [[],
            ('vm1# ', b'ibv_devinfo\n'),
            ('PORT_ACTIVE', f'ib_write_bw >/dev/null & {UNTIL_LISTENING}; ib_write_bw 192.0.2.1\n'.encode()),
            (BANDWIDTH, b'')],
    'two': [['--two'],
            ('vm1# ', b'ib_write_bw\n'),
            ('Waiting for client', SWITCH_KEY),
            ('vm2# ', b'ib_write_bw 192.0.2.1\n'),
            (BANDWIDTH, SWITCH_KEY),
            (BANDWIDTH, b'')],
}


class Dialogue:
    def __init__(self, argv):
        self.output = tempfile.TemporaryFile()
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=self.output, stderr=subprocess.STDOUT)
        self.read = 0

    def text(self):
        descriptor = self.output.fileno()
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode(errors='replace')

    def expect(self, wanted):
        """Waits for text behind all earlier expected text."""
        def found():
            # The machine's kernel, QEMU or driver could not be fetched; the demo says which.
            if self.process.poll() == SKIP:
                skip(self.text())
            if self.process.poll() is not None:
                raise Failure(f'the demo ended: {self.text()}')
            return wanted in self.text()[self.read:]
        until(SECONDS, found, lambda: f'no "{wanted}" in {self.text()}')
        self.read = self.text().index(wanted, self.read) + len(wanted)

    def type(self, keys):
        self.process.stdin.write(keys)
        self.process.stdin.flush()

    def end(self):
        self.process.stdin.close()
        if self.process.wait(SECONDS * BUSY):
            raise Failure(f'exit status {self.process.returncode}: {self.text()}')


def run():
    build, machines = sys.argv[1:]
    options, *turns = DIALOGUES[machines]
    dialogue = Dialogue([sys.executable, DEMO, build, *options])
    try:
        for wanted, keys in turns:
            dialogue.expect(wanted)
            dialogue.type(keys)
        dialogue.end()
    finally:
        dialogue.process.kill()


if __name__ == '__main__':
    main(run)
