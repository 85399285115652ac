# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
UCX's log names the transport and the device of each endpoint, and the test checks them. `rc_v` is `rc_verbs`, which
connects by `ud_verbs`. Atomics over `ud_verbs` are messages. `ucx_perftest` compares no contents; the rows of Open MPI do, over both transports.
Between hosts UCX without options uses urxe0 and not TCP, as the row with `UCX_TLS=^sm` shows: for UCX the tests' two hosts are one,
because they have one kernel.
Without options UCX uses shared memory within a host, and only messages that connect the processes go by urxe0: with `URXE_LOG=info`
each process logs the bytes that it has sent.
UCX 1.19 and newer uses a RoCE device only if the kernel has a route to the peer out of the GID's interface. Addresses that only
urxed has (without an uplink, or of `--address`) have none: set `UCX_IB_ROCE_REACHABILITY_MODE=all`. These versions are not tested.
UCX fails an endpoint as soon as its peer has disconnected, and drops what it has not polled yet. So the server of `ucp_client_server -s 1000000`
(of `libucx-dev`) reports a reset if it still registers its buffers when the client, which closes without a last message, has
disconnected. Over Linux' rdma_rxe it does so, too.
"""
import copy
import re

from host import Failure
from row import Pair, Row

PACKAGES = ['ucx-utils']
PORT = 13337
LANES = r'[( ](\w+)/(\S+?)(?=[ )])'  # transport and device, in the log's lines about endpoints
COUNT = '-n 200 -w 10'
MOST_BY_URXE = 8192  # bytes that two processes send by urxe0 to connect


def check_devices(client, _server):
    found = re.findall(r'Transport: (\S+)\n# +Device: urxe0:1\n', client)
    if found != ['rc_verbs', 'ud_verbs'] or 'Memory domain: urxe0' not in client:
        raise Failure(f'wrong transports on urxe0, {found}: {client}')


def check_figures(client):
    if not re.search(r'^Final: +\d', client, re.MULTILINE):
        raise Failure(f'no figures: {client}')


def check_lanes(text, transport, device):
    """The log of one side names only this transport and device."""
    lanes = re.findall(LANES, ''.join(re.findall(r'ep_cfg\[.*', text)))
    if not lanes or any(lane != (transport, f'{device}:1') for lane in lanes):
        raise Failure(f'wrong endpoints, {lanes}: {text}')


def check_endpoints(transport, device='urxe0'):
    def check(client, server):
        check_figures(client)
        for text in (client, server):
            check_lanes(text, transport, device)
    return check


def check_shared_memory(log):
    """The processes, whose logs these are, have exchanged payload by other ways than urxe0."""
    sent = re.findall(r'^urxe\[\d+\]: tx_bytes: (\d+)', log, re.MULTILINE)
    if len(sent) != 2 or sum(map(int, sent)) > MOST_BY_URXE or re.search('(direct|pulled)_bytes', log):
        raise Failure(f'payload has gone by urxe0: {log}')


class WithinHost(Pair):
    """Both ends on one host, without options of UCX."""

    def run(self, at):
        near = copy.copy(at)
        near.client = at.server
        super().run(near)

    def judge(self, client, server=None):
        super().judge(client, server)
        check_shared_memory(client.errors() + server.errors())


def ucp_commands(short, test, size, device='urxe0'):
    """The commands of server and client; {} is the server's address."""
    command = f'env UCX_LOG_LEVEL=info UCX_NET_DEVICES={device}:1 UCX_TLS={short} ucx_perftest'
    options = f'-t {test} -s {size} {COUNT}'
    return f'{command} {options}', f'{command} {{}} {options}'


def uct_commands(transport, test, options, device='urxe0'):
    command = f'ucx_perftest -d {device}:1 -x {transport} -t {test} {options}{COUNT}'
    return command, f'{command} {{}}'


def ucp(short, transport, test, size):
    server, client = ucp_commands(short, test, size)
    return Pair(server=server, client=client, check=check_endpoints(transport), port=PORT)


def uct(*words):
    server, client = uct_commands(*words)
    return Pair(server=server, client=client, check=lambda client, _server: check_figures(client), port=PORT)


TESTS = [('tag_lat', 8), ('tag_bw', 100000), ('tag_sync_lat', 8), ('tag_sync_bw', 4096), ('stream_lat', 8),
         ('stream_bw', 100000), ('ucp_put_lat', 8), ('ucp_put_bw', 100000), ('ucp_get', 8),
         ('ucp_get', 100000), ('ucp_add', 8), ('ucp_fadd', 8), ('ucp_swap', 8), ('ucp_cswap', 8),
         ('ucp_am_lat', 8), ('ucp_am_bw', 100000), ('tag_lat -E sleep', 64), ('tag_bw -E sleep', 65536)]

TRANSPORTS = {'rc_v': 'rc_verbs', 'ud_v': 'ud_verbs'}
LOW_LEVEL = [('rc_verbs', *words) for words in (
    ('am_lat', '-D short '), ('am_bw', '-D zcopy -s 4096 '), ('put_lat', '-D short '),
    ('put_bw', '-D zcopy -s 65536 '), ('get', '-D bcopy -s 4096 '), ('get', '-D zcopy -s 65536 '),
    ('add_mr', ''), ('fadd', ''), ('cswap', ''))]
LOW_LEVEL += [('ud_verbs', *words) for words in (
    ('am_lat', '-D short '), ('am_bw', '-D bcopy -s 1000 '), ('am_bw', '-D zcopy -s 1000 '))]

ROWS = [Row('ucx_info -d', check=check_devices)]
ROWS += [ucp(*transport, *test) for transport in TRANSPORTS.items() for test in TESTS]
ROWS += [uct(*words) for words in LOW_LEVEL]
server, client = ucp_commands('^sm', 'tag_lat', 65536)
ROWS.append(Pair(server=server.replace('UCX_NET_DEVICES=urxe0:1 ', ''), client=client.replace('UCX_NET_DEVICES=urxe0:1 ', ''),
                 check=check_endpoints('rc_verbs'), port=PORT))
# 200 messages have more bytes than the two ends may send by urxe0.
ROWS += [WithinHost(server='env URXE_LOG=info ucx_perftest', port=PORT, check=lambda client, _server: check_figures(client),
                    client=f'env URXE_LOG=info ucx_perftest {{}} -t tag_lat -s {size} {COUNT}') for size in (64, 65536)]
