# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
Bandwidth and latency. The server keeps running; the client selects the test. As on any RoCE device, most tests need
`-cm1`, with which qperf connects by rdma_cm. The tests `rds_bw` and `rds_lat` use AF_RDS sockets of the kernel
(`src/rds.c`), not verbs.
"""
import re

from host import Failure
from row import Pair, Refusal

PACKAGES = ['qperf']
PORT = 19765
# qperf's server tells the client its port before it listens on that port; then the client fails, and the test repeats it.
TOO_EARLY = 'unexpected event from RDMA CM: Event rejected'


def check(client, _server):
    if not re.search(r'^ +(bw|recv_bw|latency|msg_rate) += +[1-9]', client, re.MULTILINE):
        raise Failure(f'no figures: {client}')


def row(options, refusal=None):
    return Pair(server='qperf', client=f'qperf {{}} {options}', check=check, refusal=refusal, port=PORT,
                keeps_serving=True, too_early=TOO_EARLY)


BY_LID = 'qperf addresses this test by LID, even with -cm1. RoCE has no LIDs: {} needs a GRH'

ROWS = [row(f'-t 1 -cm1 {test}') for test in (
    'rc_bw', 'rc_bi_bw', 'rc_lat', 'rc_rdma_read_bw', 'rc_rdma_read_lat', 'rc_rdma_write_bw',
    'rc_rdma_write_lat', 'rc_rdma_write_poll_lat', 'rc_compare_swap_mr', 'rc_fetch_add_mr',
    'ver_rc_compare_swap', 'ver_rc_fetch_add')]
ROWS += [row(test, Refusal(BY_LID.format('a transition to RTR'),
                           'failed to modify QP to RTR: Invalid argument')) for test in (
    'rc_lat', 'uc_bw', 'uc_bi_bw', 'uc_lat', 'uc_rdma_write_bw', 'uc_rdma_write_lat',
    'uc_rdma_write_poll_lat')]
ROWS += [row(test, Refusal(BY_LID.format('an address handle'),
                           'failed to create address handle: Invalid argument')) for test in (
    'ud_bw', 'ud_bi_bw', 'ud_lat')]
ROWS += [row(f'-cm1 {test}', Refusal(
    'Debian builds qperf without XRC, because libibverbs has no function ibv_open_xrc_domain',
    f'{test}: bad test')) for test in ('xrc_bw', 'xrc_bi_bw', 'xrc_lat')]
