# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The programs that run between urxe and Linux' rxe, and how often and how large."""
from rdma import PATIENT

# What perftest has for each service; it checks no contents, which verbs_check does.
PERFTEST = [
    ['ib_send_bw'], ['ib_send_lat'], ['ib_write_bw'], ['ib_write_lat'],
    ['ib_read_bw'], ['ib_read_lat'],
    ['ib_atomic_bw', '-A', 'FETCH_AND_ADD'], ['ib_atomic_bw', '-A', 'CMP_AND_SWAP'],
    ['ib_atomic_lat', '-A', 'FETCH_AND_ADD'], ['ib_atomic_lat', '-A', 'CMP_AND_SWAP'],
    ['ib_send_bw', '-c', 'UC'], ['ib_send_lat', '-c', 'UC'],
    ['ib_write_bw', '-c', 'UC'], ['ib_write_lat', '-c', 'UC'],
    ['ib_send_bw', '-c', 'UD'], ['ib_send_lat', '-c', 'UD'],
]
# Ways of using them that are the same for each MTU.
WAYS = [
    ['ib_send_bw', '--use-srq', '-q', '4'], ['ib_send_bw', '-b'], ['ib_send_bw', '-e'],
    ['ib_send_bw', '-r', '8', '-t', '64'], ['ib_write_bw', '-b', '-q', '4'],
    ['ib_send_bw', '-I', '64', '-s', '64'], ['ib_write_lat', '-I', '64', '-s', '64'],
    ['ib_read_bw', '-o', '4', '-q', '2'], ['ib_write_bw', '-l', '8'],
]
PINGPONGS = [['ibv_rc_pingpong', '-c'], ['ibv_rc_pingpong', '-c', '-e'], ['ibv_uc_pingpong', '-c'],
             ['ibv_ud_pingpong', '-c'], ['ibv_srq_pingpong', '-c']]
# From 2 bytes to 8 MiB.
SIZES = [['ib_send_bw', '-a'], ['ib_write_bw', '-a'], ['ib_read_bw', '-a']]

COUNT = 50
ODD_SIZE = 10001  # no multiple of an MTU


def perftest(argv, mtu):
    """The arguments for a path MTU, without those that are given already."""
    size = str(mtu - 1 if 'UD' in argv else ODD_SIZE)
    words = [*argv, '-F', '-m', str(mtu)]
    if argv[0].startswith('ib_atomic'):
        return [*words, '-n', str(COUNT), *PATIENT]
    if '-a' in argv:
        return [*words, '-n', '5', *PATIENT]
    if '-s' not in argv:
        words += ['-s', size]
    # Unreliable services have no timeouts.
    return [*words, '-n', str(COUNT), *([] if '-c' in argv else PATIENT)]


def pingpong(argv, mtu):
    if argv[0] == 'ibv_ud_pingpong':
        return [*argv, '-s', str(mtu), '-n', str(COUNT)]
    return [*argv, '-m', str(mtu), '-s', str(ODD_SIZE), '-n', str(COUNT)]
