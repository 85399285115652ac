# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The programs that run between two hosts, and the networks that they run over."""
import ethernet

# name: the address that its GID is made of, the GID's type, and further options by program
PATHS = {
    'ipv4': (ethernet.IPV4, 'RoCE v2', {}),
    'ipv6': (ethernet.IPV6, 'RoCE v2', {}),
    'rocev1': (ethernet.IPV6, 'RoCE v1', {}),
    # The service level is the priority in the tag.
    'vlan': (ethernet.IPV4_IN_VLAN, 'RoCE v2', {'ib_': ['-S', '5'], 'ibv_': ['-l', '5']}),
}

MTUS = {1500: 1024, 9000: 4096}  # of the interface, and of the RDMA path
# With af_xdp: a frame has to fit in a page, and virtual interfaces leave less of it.
ALL_MTUS = MTUS | {3000: 2048}

LOSSES = ['0%', '0.1%', '1%']

# Those that no lost packet stops. Contents are checked by those of ibverbs and by verbs_check.
ENDING = [
    ['verbs_check'],
    ['verbs_check', '-e'],
    ['ibv_rc_pingpong', '-c'],
    ['ibv_rc_pingpong', '-c', '-e'],
    ['ibv_srq_pingpong', '-c'],
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
]

# Those that wait for ever for a message that the network has lost.
WAITING = [
    ['ibv_uc_pingpong', '-c'],
    ['ibv_ud_pingpong'],
    ['ib_send_bw', '-F', '-c', 'UD', '-a', '-n', '50'],
    ['ib_send_lat', '-F', '-c', 'UD', '-a', '-n', '50'],
    ['ib_send_lat', '-F', '-c', 'UD', '-s', '1001', '-D', '2'],
]


def fitted(argv, path, path_mtu):
    """A program's arguments for a path. perftest asks the port for its MTU, the others do not."""
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
    """perftest takes half a second of each size of -a for itself: the same with one odd size."""
    if '-a' not in argv:
        return argv
    at = argv.index('-a')
    return argv[:at] + ['-s', '1001' if 'UD' in argv else '100001', '-n', '50']


def section(path, mtu, loss):
    """
    A part of the programs for each cell of the table path × MTU × loss. All cells together run
    each program over each path, each MTU and, where it survives that, with each loss; with all
    sizes over one path.
    """
    # Four in a row of these six have both MTUs and each loss.
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
    """All that a network with this loss can carry."""
    return ENDING + (WAITING if loss == LOSSES[0] else [])
