# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A row of the table of clients: what a user types, and what has to come of it."""
import os
import re
import shlex
from dataclasses import dataclass
from typing import Callable

from host import Failure, succeed, wait_listening
from rdmacm import start_server

SECONDS = 120
# qperf's server has listened to no port before the one that it tells, so that urxed keeps no request for it.
ATTEMPTS = 20
PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'programs')


def ends_well(_client, _server):
    """The check of programs whose exit status tells all."""


@dataclass(frozen=True)
class Refusal:
    """Why something cannot work, and what client or server says to that."""
    reason: str
    says: str  # a regular expression
    status: int = 1  # the client's


@dataclass(frozen=True)
class Row:
    """
    A command without a peer. In it, {} is the server's address where there is one, {gid} the index of
    the host's own GID, {copy} and {memory} files on the server, {programs} the folder of our own ones. The
    check gets what client and server printed, and raises Failure.
    """
    client: str
    check: Callable = ends_well
    refusal: Refusal | None = None

    def run(self, at):
        client = at.client.start(*words(self.client, at, at.client))
        try:
            self.judge(client)
        except Failure as failure:
            raise Failure(f'{failure}\nthe client: {client.describe()}') from None
        finally:
            client.kill()

    def judge(self, client, server=None):
        status = client.wait(SECONDS)
        if self.refusal:
            if status != self.refusal.status or not re.search(self.refusal.says, said(client, server)):
                raise Failure(f'status {status}, and not the refusal that there should be')
            return
        succeed(client, SECONDS)
        if server:
            self.end(server)
        self.check(client.output(), server.output() if server else '')


@dataclass(frozen=True)
class Pair(Row):
    """Server and client, who meet over TCP. A server that serves on is ended when the client is done."""
    server: str = ''
    port: int = 0  # where the server listens
    serves_on: bool = False
    # What a client says that was faster than its server, which tells it to come and then listens.
    too_early: str | None = None

    def end(self, server):
        if not self.serves_on:
            succeed(server, SECONDS)

    def start_server(self, at):
        server = at.server.start(*words(self.server, at, at.server))
        wait_listening(server, self.port)
        return server

    def run(self, at):
        for _ in range(ATTEMPTS):
            server = self.start_server(at)
            client = at.client.start(*words(self.client, at, at.client))
            try:
                if self.came_too_early(client):
                    continue
                self.judge(client, server)
                return
            except Failure as failure:
                raise Failure(f'{failure}\nthe server: {server.describe()}\n'
                              f'the client: {client.describe()}') from None
            finally:
                server.kill()
                client.kill()
        raise Failure(f'too early {ATTEMPTS} times: {client.describe()}')

    def came_too_early(self, client):
        if not self.too_early:
            return False
        client.wait(SECONDS)
        return re.search(self.too_early, said(client))


@dataclass(frozen=True)
class Connected(Pair):
    """Server and client, who meet by rdma_cm."""
    sign: str = 'rdma_cm LISTEN: ok'  # with which the server is ready

    def start_server(self, at):
        return start_server(at.server, words(self.server, at, at.server), self.sign)


def said(*programs):
    return ''.join(program.output() + program.errors() for program in programs if program)


def words(command, at, host):
    gid = at.gid(host) if '{gid}' in command else None
    return shlex.split(command.format(at.address, gid=gid, copy=copy(at.server), memory=memory(at.server),
                                      programs=PROGRAMS))


def copy(host):
    """A path for a program to write to."""
    return os.path.join(host.top, 'copy')


def memory(host):
    """Another, for what a program maps."""
    return os.path.join(host.top, 'memory')


def typed(command):
    """A command as the table has it."""
    return command.format('SERVER', gid='GID', copy='COPY', memory='MEMORY',
                          programs='tests/clients/programs')


def outcome(row):
    """What the table says of a row."""
    return f'refused: {row.refusal.reason}' if row.refusal else 'works'
