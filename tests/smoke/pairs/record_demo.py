#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
`./dev record-demo`: records the demo into docs/demo.svg, which the README shows.

    record_demo.py record SVG
    record_demo.py check SVG BUILD    the commands of the recording run, and print its lines, whatever the numbers
"""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
import recording  # noqa: E402
from host import BUSY, Failure, main  # noqa: E402

DEMO = './dev demo'
DEVICES = 'build/tools/urxe run -- ibv_devices'
LARGEST = 12000  # bytes
SECONDS = 60


def current(build, run_dir):
    """The commands as a test runs them: what is built already, in any build directory."""
    demo = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'demo.py')
    return {DEMO: [sys.executable, demo, build],
            DEVICES: [os.path.join(build, 'tools/urxe'), 'run', '--run-dir', run_dir, '--', 'ibv_devices']}


def shape(text):
    """A line without what differs between machines: figures, versions, GUIDs, and the width of columns."""
    return ' '.join(re.sub(r'\b[0-9a-f]{16}\b|[0-9]+', '#', text).split())


def shapes(lines):
    return [shape(line) for line in lines if line.strip() and line != 'building']


def check_picture(path):
    with open(path, encoding='utf-8') as file:
        picture = file.read()
    if len(picture) > LARGEST or '<script' in picture:
        raise Failure(f'{path}: {len(picture)} bytes, of which {LARGEST} are the limit, and without scripts')


def check(path, build):
    check_picture(path)
    recorded = recording.texts(path)
    with tempfile.TemporaryDirectory() as folder:
        compare(path, recorded, current(build, os.path.join(folder, 'run')))


def compare(path, recorded, commands):
    if list(recorded) != list(commands):
        raise Failure(f'{path} shows {list(recorded)}, not {list(commands)}; ./dev record-demo makes it again')
    environment = {name: value for name, value in os.environ.items() if not name.startswith('URXE_')}
    for command, argv in commands.items():
        result = subprocess.run(argv, capture_output=True, text=True, check=False, env=environment,
                                timeout=SECONDS * BUSY)
        now = shapes(result.stdout.splitlines())
        if command == DEVICES:  # the kernel may have further devices
            now = [line for line in now if line in shapes(recorded[command])]
        if result.returncode or now != shapes(recorded[command]):
            raise Failure(f'{command}: not the lines of {path}; ./dev record-demo makes it again\n'
                          f'{result.stdout}{result.stderr}')


def run():
    action, path, *rest = sys.argv[1:]
    if action == 'check':
        check(path, *rest)
        return
    lines = recording.record([DEMO, DEVICES])
    with open(path, 'w', encoding='utf-8') as file:
        file.write(recording.svg(lines, f'a terminal: {DEMO}'))
    check_picture(path)
    print(f'{path}: {len(lines)} lines in {lines[-1].seconds:.1f} s')


main(run)
