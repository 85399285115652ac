# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Debian's programs of rdma_cm as servers and clients: start, early rejections, and the end."""
import re

from host import Failure, succeed, until

SECONDS = 120
# Attempts with a kernel server, whose rdma_cm rejects early clients at once. In nine runs with an emulated
# machine at load 10 no client was early.
KERNEL_ATTEMPTS = 5
OWN_ATTEMPTS = 3  # with urxed, which keeps an early request for a moment; 14 runs at load 25 needed none
# Output of perftest's clients after a REJ "invalid service ID" or a SIDR_REP "unsupported".
TOO_EARLY = r'RDMA_CM_EVENT_(REJECTED; error: 8|UNREACHABLE; error: 1)\.'
# Last output of rping of rdma-core 44 if it closes its event channel before its other thread reads the channel
# again: an error after all work is done, with any device (rdma-core's pull request 1622). The thread reads from the
# number that lies in freed memory, which another file may have.
CLOSED_TOO_EARLY = (r'(client|server) DISCONNECT EVENT\.\.\.\n(wait for RDMA_READ_ADV state 10\n)?'
                    r'rdma_get_cm_event: (Bad file descriptor|Invalid argument)\n\Z')
# Server and client; {} is the server's address.
PROGRAMS = [
    (['rping', '-s', '-C', '10', '-V'], ['rping', '-c', '-a', '{}', '-C', '10', '-V']),
    (['ucmatose', '-c', '8'], ['ucmatose', '-s', '{}', '-c', '8']),
    (['udaddy', '-c', '2'], ['udaddy', '-s', '{}', '-c', '2']),
    (['ib_write_bw', '-R', '-F', '-n', '500'], ['ib_write_bw', '-R', '-F', '-n', '500', '{}']),
    (['ib_send_bw', '-R', '-F', '-n', '500', '-e'],
     ['ib_send_bw', '-R', '-F', '-n', '500', '-e', '{}']),
    (['rdma_server'], ['rdma_client', '-s', '{}']),
]


def start_server(host, argv, sign='rdma_cm LISTEN: ok'):
    """Starts a server, and waits until it listens, according to the library's lines on stderr."""
    host.environment['URXE_LOG'] = 'debug'
    server = host.start(*argv)
    del host.environment['URXE_LOG']
    until(30, lambda: sign in server.errors() or not server.running(),
          lambda: f'does not listen: {server.describe()}')
    return server


def came_too_early(argv, client):
    """
    Whether perftest's client connected for the second time before its server listened again. The client is then
    rejected, tries again with freed memory, and crashes. A rejection of any other program is an error.
    """
    early = argv[0].startswith('ib_') and re.search(TOO_EARLY, client.output() + client.errors())
    if early:
        client.may_crash = True
        print(f'too early: {" ".join(client.argv)}')
    return early


def ended_well(program, seconds):
    """Whether the program ends with status 0, or with rping's harmless error."""
    status = program.wait(seconds)
    # Between its lines are those of the library.
    lines = re.sub(r'(?m)^urxe\[.*\n', '', program.output() + program.errors())
    return not status or bool(re.search(CLOSED_TOO_EARLY, lines))


def end_well(program, seconds):
    if not ended_well(program, seconds):
        raise Failure(f'exit status {program.wait(seconds)}: {program.describe()}')


def check_pair(server_host, client_host, server_argv, client_argv, address):
    for _ in range(OWN_ATTEMPTS):
        server = start_server(server_host, server_argv)
        client = client_host.start(*[word.format(address) for word in client_argv])
        client.wait(SECONDS)
        if not came_too_early(client_argv, client):
            break
        server.kill()
    try:
        end_well(client, SECONDS)
        end_well(server, SECONDS)
    except Failure as failure:
        raise Failure(f'{failure}\nthe server: {server.describe()}') from None


def check_group(receiving, sending):
    argv = ['mckey', '-m', '239.1.2.3', '-C', '10', '-S', '100']
    receiver = start_server(receiving, argv, 'ATTACH_MCAST: ok')
    sender = sending.start(*argv, '-s')
    succeed(sender, SECONDS)
    try:
        succeed(receiver, SECONDS)
    except Failure as failure:
        raise Failure(f'{failure}\nthe sender: {sender.describe()}') from None


def check_ipv6(host):
    check_pair(host, host, ['rping', '-s', '-a', '::', '-C', '3'],
               ['rping', '-c', '-a', '{}', '-C', '3'], '::1')


def check_nobody_listens(host):
    client = host.start('rping', '-c', '-a', '127.0.0.1', '-p', '4999', '-C', '1')
    client.wait(30)
    if 'RDMA_CM_EVENT_REJECTED, error 8' not in client.output() + client.errors():
        raise Failure(f'no rejection: {client.describe()}')
