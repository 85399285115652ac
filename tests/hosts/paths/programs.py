# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The programs that run between two hosts, and the paths, MTUs and losses."""
import ethernet

# name: the address of the GID, the type of the GID, and further options for each program
PATHS = {
    'ipv4': (ethernet.IPV4, 'RoCE v2', {}),
    'ipv6': (ethernet.IPV6, 'RoCE v2', {}),
    'rocev1': (ethernet.IPV6, 'RoCE v1', {}),
    # The service level is the priority in the tag.
    'vlan': (ethernet.IPV4_IN_VLAN, 'RoCE v2', {'ib_': ['-S', '5'], 'ibv_': ['-l', '5']}),
}

MTUS = {1500: 1024, 9000: 4096}  # interface MTU: path MTU
# With af_xdp: a frame must fit in a page, of which virtual interfaces reserve a part.
ALL_MTUS = MTUS | {3000: 2048}

LOSSES = ['0%', '0.1%', '1%']

# Programs that end despite lost packets. The ibverbs examples and verbs_check compare contents.
ENDING = [
    ['verbs_check'],
    ['verbs_check', '-e'],
    ['ibv_rc_pingpong', '-c'],
    ['ibv_rc_pingpong', '-c', '-e'],
    # One of several queue pairs would often wait for a retransmission when the others have done the work for both.
    ['ibv_srq_pingpong', '-c', '-q', '1'],
    ['ib_send_bw', '-F', '-a', '-n', '5'],
    ['ib_write_bw', '-F', '-a', '-n', '5'],
    ['ib_read_bw', '-F', '-a', '-n', '5'],
    ['ib_send_bw', '-F', '-q', '16', '-t', '5', '-a', '-n', '5'],
    ['ib_write_bw', '-F', '-q', '16', '-t', '5', '-a', '-n', '5'],
    ['ib_read_bw', '-F', '-q', '16', '-t', '5', '-a', '-n', '5'],
    ['ib_send_lat', '-F', '-a', '-n', '5'],
    ['ib_write_lat', '-F', '-a', '-n', '5'],
    ['ib_read_lat', '-F', '-a', '-n', '5'],
    ['ib_atomic_bw', '-F', '-n', '1000'],
    ['ib_atomic_bw', '-F', '-n', '1000', '-A', 'CMP_AND_SWAP'],
    ['ib_atomic_lat', '-F', '-n', '200'],
    ['ib_write_bw', '-F', '-c', 'UC', '-a', '-n', '5'],
    ['ib_send_bw', '-F', '-c', 'UC', '-s', '100001', '-D', '2'],
    ['ib_send_bw', '-F', '-c', 'UD', '-s', '1001', '-D', '2'],
    ['ib_send_bw', '-F', '--use-srq', '-q', '16', '-s', '100001', '-n', '50'],
]

# Programs that wait for ever for a lost message, or end without waiting for their peer.
WAITING = [
    ['ibv_srq_pingpong', '-c'],
    ['ibv_uc_pingpong', '-c'],
    ['ibv_ud_pingpong'],
    ['ib_send_bw', '-F', '-c', 'UD', '-a', '-n', '50'],
    ['ib_send_lat', '-F', '-c', 'UD', '-a', '-n', '50'],
    ['ib_send_lat', '-F', '-c', 'UD', '-s', '1001', '-D', '2'],
]


def fitted(argv, path, path_mtu):
    """A program's arguments for a path. Only perftest takes the MTU from the port."""
    argv = list(argv)
    if argv[0] == 'ibv_ud_pingpong':
        argv += ['-s', str(path_mtu)]
    elif not argv[0].startswith('ib_'):
        argv += ['-m', str(path_mtu)]
    for prefix, words in PATHS[path][2].items():
        if argv[0].startswith(prefix):
            argv += words
    return argv


def one_size(argv):
    """The same arguments with one odd size instead of -a, because perftest needs half a second for each size."""
    if '-a' not in argv:
        return argv
    at = argv.index('-a')
    return argv[:at] + ['-s', '1001' if 'UD' in argv else '100001', '-n', '50']


def section(path, mtu, loss):
    """
    The programs for one cell of the table path × MTU × loss. All cells together run each program over each path,
    at each MTU and, if it survives loss, with each loss; with all sizes over one path.
    """
    # Any four consecutive entries of these six contain both MTUs and each loss.
    turns = [(sorted(MTUS)[i % len(MTUS)], LOSSES[i % len(LOSSES)]) for i in range(6)]
    first = list(PATHS).index(path)
    chosen = []
    for number, argv in enumerate(ENDING + WAITING):
        turn = turns[(first + number) % len(turns)]
        if argv in WAITING:
            turn = (turn[0], LOSSES[0])
        if turn == (mtu, loss):
            chosen.append(argv if (first + number) % len(PATHS) == 0 else one_size(argv))
    return chosen


def everything(loss):
    """All programs that end on a network with this loss."""
    return ENDING + (WAITING if loss == LOSSES[0] else [])
