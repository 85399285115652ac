# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A client of QEMU's machine protocol (QMP)."""
import contextlib
import json
import socket

from host import Failure, until


class Qmp:
    """Commands to one QEMU, and the events that it has reported since the start."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        until(60, lambda: self.connects(path), lambda: f'QEMU does not listen at {path}')
        self.lines = self.socket.makefile('r', encoding='utf-8')
        self.events = []
        self.read()  # the greeting
        self.ask('qmp_capabilities')

    def connects(self, path):
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            self.socket.connect(path)
            return True
        return False

    def read(self):
        line = self.lines.readline()
        if not line:
            raise Failure('QEMU has closed its QMP connection')
        message = json.loads(line)
        if 'event' in message:
            self.events.append(message)
        return message

    def ask(self, name, /, **arguments):
        """Executes a command; returns its result."""
        message = {'execute': name}
        if arguments:
            message['arguments'] = {key.replace('_', '-'): value for key, value in arguments.items()}
        self.socket.sendall(json.dumps(message).encode())
        while True:
            answer = self.read()
            if 'return' in answer:
                return answer['return']
            if 'error' in answer:
                raise Failure(f'{name}: {answer["error"]["desc"]}')

    def job(self, name, **arguments):
        """Executes a command that is a job, and waits for its end."""
        self.ask(name, job_id='job', **arguments)
        until(120, lambda: self.ask('query-jobs')[0]['status'] == 'concluded', lambda: f'{name} does not end')
        error = self.ask('query-jobs')[0].get('error')
        self.ask('job-dismiss', id='job')
        if error:
            raise Failure(f'{name}: {error}')

    def event_time(self, name):
        """The wall clock's time of the newest event of a name, in seconds."""
        self.ask('query-status')  # reads what has come
        times = [event['timestamp'] for event in self.events if event['event'] == name]
        if not times:
            raise Failure(f'no event {name}: {self.events}')
        return times[-1]['seconds'] + times[-1]['microseconds'] / 1e6

    def close(self):
        self.lines.close()
        self.socket.close()
