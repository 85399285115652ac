#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""`urxe capture`: text lines, pcapng with port names and drop reasons, a slow reader, and errors."""
import json
import os
import re
import signal
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
from documented import check_document  # noqa: E402
from endless import EndlessPair  # noqa: E402
from host import Failure, Host, Pair, main, open_files, size_of, succeed, until  # noqa: E402

SECTION, INTERFACE, PACKET = 0x0a0d0d0a, 1, 6
COMMENT, NAME, FLAGS, RESOLUTION = 1, 2, 2, 9


def options(data):
    found = {}
    at = 0
    while at < len(data):
        code, length = struct.unpack_from('<HH', data, at)
        if code == 0:
            break
        found[code] = data[at + 4:at + 4 + length]
        at += 4 + (length + 3) // 4 * 4
    return found


def walk(data):
    """Yields the packets of a pcapng file: (interface name, direction, comment, frame)."""
    names, packets, at = [], [], 0
    while at < len(data):
        kind, length = struct.unpack_from('<II', data, at)
        body = data[at + 8:at + length - 4]
        if length % 4 or struct.unpack_from('<I', data, at + length - 4)[0] != length:
            raise Failure(f'the two lengths of a block of {length} bytes at {at} differ')
        if (kind == SECTION) != (at == 0):
            raise Failure(f'block {kind:#x} at {at}')
        if kind == INTERFACE:
            found = options(body[8:])
            if body[:2] != b'\1\0' or found[RESOLUTION] != b'\x09':
                raise Failure('an interface is not Ethernet with nanosecond times')
            names.append(found[NAME].decode())
        elif kind == PACKET:
            interface, _, _, captured, whole = struct.unpack_from('<IIIII', body)
            found = options(body[20 + (captured + 3) // 4 * 4:])
            if captured != whole:
                raise Failure('a frame is truncated')
            packets.append((names[interface], struct.unpack('<I', found[FLAGS])[0],
                            found[COMMENT].decode(), body[20:20 + captured]))
        at += length
    return packets


def start(host, *arguments):
    """Starts a capture. The daemon handles requests in order, so it captures once it has answered a second request."""
    program = host.spawn([host.urxe, 'capture', '--run-dir', host.run_dir, *arguments])
    until(10, lambda: not program.running()
          or any('urxe-capture' in file for file in open_files(program.process.pid)),
          lambda: f'does not begin: {program.describe()}')
    return program


def finish(program):
    """Ends a capture; returns the numbers of captured and lost frames."""
    program.kill(signal.SIGINT)
    succeed(program, 10)
    found = re.fullmatch(r'urxe: (\d+) frames captured, (\d+) lost\n', program.errors())
    if not found:
        raise Failure(f'no summary: {program.describe()}')
    return int(found.group(1)), int(found.group(2))


def check_drops(frames):
    """On a busy machine a repeated packet may come when its receiver has destroyed its QP, or has ended."""
    delivered = set()
    for way, opcode, packet, drop in frames:
        if drop and (drop not in ('not_mutual', 'no_qp') or (opcode, packet) not in delivered):
            raise Failure(f'{way}: {opcode} {packet} dropped, {drop}')
        if way == 'to':
            delivered.add((opcode, packet))


def check_lines(build):
    """Each frame gives a line at the port where it comes in, and a line at the port where it goes out."""
    with Host(build) as host:
        program = start(host)
        Pair(host, host, ['ibv_rc_pingpong', '-n', '10']).finish(20)
        captured, lost = finish(program)
        lines = program.output().splitlines()
        if lost or captured != len(lines):
            raise Failure(f'{captured} captured, {lost} lost, {len(lines)} lines')
        # (way, opcode, QP and PSN, drop) of each frame
        pattern = (r'\d\d:\d\d:\d\d\.\d{9} (from|to) ibv_rc_pingpong-\d+  \S+ > \S+  '
                   r'(RC_\w+) (QP 0x[0-9a-f]{6} PSN \d+).*  \d+ bytes(?:  dropped, (\w+): [^:]+)?')
        found = [re.fullmatch(pattern, line) for line in lines]
        if not all(found):
            raise Failure(f'unexpected line: {lines[found.index(None)]}')
        check_drops([match.groups() for match in found])
        for what in ('RC_SEND_FIRST', 'RC_SEND_LAST'):
            # On a busy machine packets are repeated, with the same PSN.
            packets = {match.group(1, 3) for match in found if match.group(2) == what}
            ways = [way for way, _ in packets]
            if ways.count('from') != 20 or ways.count('to') != 20:
                raise Failure(f'{what}: {packets}')


def check_json(build):
    """Each frame gives one line of JSON, with what its text has."""
    with Host(build) as host:
        program = start(host, '--json')
        Pair(host, host, ['ibv_rc_pingpong', '-n', '10']).finish(20)
        captured, _ = finish(program)
        frames = [json.loads(line) for line in program.output().splitlines()]
        if captured != len(frames):
            raise Failure(f'{captured} captured, {len(frames)} lines')
        for frame in frames:
            check_document('capture', frame)
            packet = frame['roce']
            if packet and not frame['text'].startswith(
                    f'{packet["opcode"]} QP 0x{packet["dest_qpn"]:06x} PSN {packet["psn"]}'):
                raise Failure(f'the text differs: {frame}')
        for what in ('RC_SEND_FIRST', 'RC_SEND_LAST'):
            packets = {(frame['direction'], frame['roce']['dest_qpn'], frame['roce']['psn']) for frame in frames
                       if frame['roce'] and frame['roce']['opcode'] == what}
            if len(packets) != 40:
                raise Failure(f'{what}: {packets}')
        acks = [frame for frame in frames if frame['roce'] and frame['roce']['opcode'] == 'RC_ACKNOWLEDGE']
        if not acks or not all(frame['roce']['syndrome'] is not None for frame in acks):
            raise Failure(f'acknowledgements without syndrome: {acks}')


def check_file(build):
    """A capture of one port ends after a count of frames, and `urxe replay` reads the pcapng file."""
    with Host(build) as host:
        path = os.path.join(host.top, 'frames.pcapng')
        pair = EndlessPair(host, host, ['ib_write_bw', '-F'])
        port = f'ib_write_bw-{pair.client.process.pid}'
        until(10, lambda: port in show_ports(host), lambda: 'the client does not attach')
        program = start(host, '-i', port, '-w', path, '-c', '500')
        succeed(program, 20)
        with open(path, 'rb') as file:
            packets = walk(file.read())
        if len(packets) != 500 or {packet[0] for packet in packets} != {port}:
            raise Failure(f'{len(packets)} packets of {({packet[0] for packet in packets})}')
        for _, direction, comment, _ in packets:
            word = {1: 'from', 2: 'to'}[direction]
            if not re.match(rf'{word} {port}: RC_', comment):
                raise Failure(f'direction {direction}, comment {comment}')
        replay = subprocess.run([host.urxe, 'replay', path], capture_output=True, text=True,
                                check=False)
        if replay.returncode or '500 RoCE packets' not in replay.stdout:
            raise Failure(f'urxe replay: {replay}')
        pair.kill()
        # libpcap reads the file before the first frame, too.
        path = os.path.join(host.top, 'empty.pcapng')
        program = start(host, '-w', path)
        until(10, lambda: size_of(path), program.describe)
        replay = subprocess.run([host.urxe, 'replay', path], capture_output=True, text=True, check=False)
        finish(program)
        if 'has no RoCE packet' not in replay.stderr:
            raise Failure(f'no frame: {replay}')


def show_ports(host):
    return subprocess.run([host.urxe, 'show', 'port', '--run-dir', host.run_dir],
                          capture_output=True, text=True, check=False).stdout


def check_reasons(build):
    """A frame that the switch drops has its reason in the text line and in the pcapng comment."""
    with Host(build) as host:
        path = os.path.join(host.top, 'frames.pcapng')
        lines, file = start(host), start(host, '-w', path)
        pair = EndlessPair(host, host, ['ib_write_bw', '-F'])
        until(10, lambda: 'RC_WRITE' in lines.output(), lambda: 'nothing moves')
        pair.server.kill()
        until(20, lambda: 'dropped, no_qp: no process holds the destination QPN'
              in lines.output(), lambda: f'no reason:\n{lines.output()[-2000:]}')
        pair.kill()
        finish(lines)
        finish(file)
        with open(path, 'rb') as data:
            if not any('dropped, no_qp' in packet[2] for packet in walk(data.read())):
                raise Failure('no comment has the drop reason')


def check_slow(build):
    """A stopped reader loses frames, which are counted; the captured programs continue."""
    with Host(build) as host:
        program = start(host, '-w', '/dev/null')
        program.kill(signal.SIGSTOP)
        Pair(host, host, ['ib_write_bw', '-F', '-n', '5000']).finish(30)
        program.kill(signal.SIGCONT)
        captured, lost = finish(program)
        if not captured or not lost:
            raise Failure(f'{captured} captured, {lost} lost')
        # A killed reader frees its place for another capture.
        for _ in range(6):
            start(host, '-w', '/dev/null').kill()
        finish(start(host, '-w', '/dev/null'))


def check_mistakes(build):
    with Host(build) as host:
        for status, arguments in ((2, ['-c', '0']), (2, ['-c', 'x']), (2, ['surplus']), (2, ['-x']),
                                  (2, ['-w']), (2, ['--json', '-w', 'frames']), (1, ['-w', '/nonexistent/file']),
                                  (1, ['-w', os.path.join(host.run_dir, 'urxed.sock')]),
                                  (2, ['-i', '']), (1, ['-i', 'x' * 100]), (1, ['-i', 'typo']), (1, ['--run-dir', '/nonexistent'])):
            program = host.spawn([host.urxe, 'capture', '--run-dir', host.run_dir, *arguments])
            found = program.wait(10)
            if found != status or len(program.errors().splitlines()) != 1:
                raise Failure(f'{arguments}: status {found}, {program.errors()}')
        full = start(host, '-w', '/dev/full')
        Pair(host, host, ['ibv_rc_pingpong', '-n', '10']).finish(20)
        if full.wait(10) != 1 or 'the capture ends: No space left on device' not in full.errors():
            raise Failure(f'a full disk: {full.describe()}')
        fifo = os.path.join(host.top, 'fifo')
        os.mkfifo(fifo)
        program = start(host, '-w', fifo)
        program.kill(signal.SIGINT)
        if program.wait(10) != 1 or 'cannot write' not in program.errors():
            raise Failure(f'a pipe without a reader: {program.describe()}')
        captures = [start(host) for _ in range(4)]
        refused = host.spawn([host.urxe, 'capture', '--run-dir', host.run_dir])
        if refused.wait(10) != 1 or 'as many captures' not in refused.errors():
            raise Failure(f'a fifth capture: {refused.describe()}')
        # Each capture ends with the daemon.
        host.daemon.kill(signal.SIGTERM)
        for program in captures:
            program.wait(10)


CHECKS = {'lines': check_lines, 'json': check_json, 'file': check_file, 'reasons': check_reasons, 'slow': check_slow,
          'mistakes': check_mistakes}

if __name__ == '__main__':
    main(lambda: CHECKS[sys.argv[2]](sys.argv[1]))
