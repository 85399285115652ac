# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A row of docs/clients.md: the commands that a user types, and the check of their output."""
import itertools
import os
import re
import shlex
from dataclasses import dataclass
from typing import Callable

import compiled
from compiled import PROGRAMS
from host import Failure, succeed, wait_listening
from rdmacm import start_server

SECONDS = 120
# A client that comes before its server listens is refused at once, so the test starts both again.
ATTEMPTS = 20
# Placeholders that stand for `urxe run --`.
RUNS = ['run', 'own', 'default']


def accept_output(_client, _server):
    """The check of programs whose exit status is the whole result."""


@dataclass(frozen=True)
class Refusal:
    """The reason why a command cannot work, and the message of the client or the server."""
    reason: str
    message: str  # a regular expression
    status: int = 1  # the client's


@dataclass(frozen=True)
class Row:
    """
    A command without a server. Placeholders: {} is the server's address, {gid} the index of the host's own
    GID, {copy} and {memory} are files on the server, {programs} is the folder of the tests' own programs.
    Those of compiled.py are compiled first.
    {run}, {own} and {default} are `urxe run --` with the run directory of the place, with one of the row's own, and with
    the user's; then `bare` is set, and no other `urxe run` starts the command. {installed} is where urxe is installed.
    The check gets the output of client and server, and raises Failure.
    """
    client: str
    check: Callable = accept_output
    refusal: Refusal | None = None
    bare: bool = False

    def start(self, host, argv):
        return host.spawn(argv) if self.bare else host.start(*argv)

    def argv(self, at):
        return words(self.client, at, at.client)

    def run(self, at):
        client = self.start(at.client, self.argv(at))
        try:
            self.judge(client)
        except Failure as failure:
            raise Failure(f'{failure}\nthe client: {client.describe()}') from None
        finally:
            client.kill()

    def judge(self, client, server=None):
        status = client.wait(SECONDS)
        if self.refusal:
            client.may_crash = True
            if status != self.refusal.status or not re.search(self.refusal.message, said(client, server)):
                raise Failure(f'status {status}, or another message than the expected refusal')
            return
        succeed(client, SECONDS)
        if server:
            self.end(server)
        self.check(client.output(), server.output() if server else '')


@dataclass(frozen=True)
class Pair(Row):
    """A server and a client that connect by TCP. With keeps_serving, the test kills the server after the client."""
    server: str = ''
    port: int = 0  # where the server listens
    keeps_serving: bool = False
    # The message of a client that came before its server listened.
    too_early: str | None = None

    def end(self, server):
        if not self.keeps_serving:
            succeed(server, SECONDS)

    def server_argv(self, at):
        return words(self.server, at, at.server)

    def start_server(self, at):
        server = self.start(at.server, self.server_argv(at))
        wait_listening(server, self.port)
        return server

    def run(self, at):
        # Before the server starts: argv() compiles the client's program, for longer than some servers wait for a client.
        argv = self.argv(at)
        for _ in range(ATTEMPTS):
            server = self.start_server(at)
            client = self.start(at.client, argv)
            try:
                if self.came_too_early(client):
                    continue
                self.judge(client, server)
                if not self.refusal:
                    at.check_way(client)
                return
            except Failure as failure:
                raise Failure(f'{failure}\nthe server: {server.describe()}\n'
                              f'the client: {client.describe()}') from None
            finally:
                server.kill()
                client.kill()
        raise Failure(f'the client came before the server listened, {ATTEMPTS} times: {client.describe()}')

    def came_too_early(self, client):
        if not self.too_early:
            return False
        client.wait(SECONDS)
        early = re.search(self.too_early, said(client))
        # A client of perftest that was rejected tries again with freed memory, and crashes.
        client.may_crash = client.may_crash or bool(early)
        return early


@dataclass(frozen=True)
class Connected(Pair):
    """A server and a client that connect by rdma_cm."""
    sign: str = 'rdma_cm LISTEN: ok'  # output of `urxe run` that shows that the server is ready

    def start_server(self, at):
        return start_server(at.server, self.server_argv(at), self.sign)


def said(*programs):
    return ''.join(program.output() + program.errors() for program in programs if program)


def words(command, at, host):
    gid = at.gid(host) if '{gid}' in command else None
    run = f'{host.urxe} run'
    typed_words = shlex.split(command.format(
        at.address, gid=gid, copy=copy(at.server), memory=memory(at.server), programs=PROGRAMS, installed=host.top,
        run=f'{run} --run-dir {host.run_dir} --', own=f'{run} --run-dir {own_run_dir(host)} --', default=f'{run} --'))
    return at.named([compiled.place(word, host.top) for word in typed_words])


numbers = itertools.count()


def own_run_dir(host):
    """The path of a run directory that no other row has used."""
    return os.path.join(host.top, f'own-{next(numbers)}')


def copy(host):
    """The file that the server's program creates."""
    return os.path.join(host.top, 'copy')


def memory(host):
    """The file that the server's program maps as its buffers."""
    return os.path.join(host.top, 'memory')


def typed(command):
    """A command as docs/clients.md shows it."""
    return command.format('SERVER', gid='GID', copy='COPY', memory='MEMORY',
                          programs='tests/clients/programs', installed='/opt/urxe', **dict.fromkeys(RUNS, 'urxe run --'))


def outcome(row):
    """A row's expected result, for the log."""
    return f'refused: {row.refusal.reason}' if row.refusal else 'works'
