# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The programs that run between urxe and Linux' rxe, with their sizes and message counts."""
from rdma import PATIENT

# perftest's programs for each service. perftest compares no contents.
PERFTEST = [
    ['ib_send_bw'], ['ib_send_lat'], ['ib_write_bw'], ['ib_write_lat'],
    ['ib_read_bw'], ['ib_read_lat'],
    ['ib_atomic_bw', '-A', 'FETCH_AND_ADD'], ['ib_atomic_bw', '-A', 'CMP_AND_SWAP'],
    ['ib_atomic_lat', '-A', 'FETCH_AND_ADD'], ['ib_atomic_lat', '-A', 'CMP_AND_SWAP'],
    ['ib_send_bw', '-c', 'UC'], ['ib_send_lat', '-c', 'UC'],
    ['ib_write_bw', '-c', 'UC'], ['ib_write_lat', '-c', 'UC'],
    ['ib_send_bw', '-c', 'UD'], ['ib_send_lat', '-c', 'UD'],
]
# Options that do not depend on the MTU.
WAYS = [
    ['ib_send_bw', '--use-srq', '-q', '4'], ['ib_send_bw', '-b'], ['ib_send_bw', '-e'],
    ['ib_send_bw', '-r', '8', '-t', '64'], ['ib_write_bw', '-b', '-q', '4'],
    ['ib_send_bw', '-I', '64', '-s', '64'], ['ib_write_lat', '-I', '64', '-s', '64'],
    ['ib_read_bw', '-o', '4', '-q', '2'], ['ib_read_bw', '-o', '5'], ['ib_write_bw', '-l', '10'],
]
# verbs_check with all sizes, and with one size; both compare every byte.
VERBS_CHECK = [['verbs_check'], ['verbs_check', '-c', 'UC'], ['verbs_check', '-c', 'UD'],
               ['verbs_check', '-S', '-s', '100001']]
LARGEST = [['verbs_check', '-s', str(8 << 20)]]
PINGPONGS = [['ibv_rc_pingpong', '-c'], ['ibv_rc_pingpong', '-c', '-e'], ['ibv_uc_pingpong', '-c'],
             ['ibv_ud_pingpong', '-c'], ['ibv_srq_pingpong', '-c']]
# From 2 bytes to 8 MiB.
SIZES = [['ib_send_bw', '-a'], ['ib_write_bw', '-a'], ['ib_read_bw', '-a']]

# Programs that end although the network loses packets: RC programs, and programs that count received messages.
UNDER_FAULTS = [argv for argv in PERFTEST if '-c' not in argv] + [
    ['ib_send_bw', '-c', 'UC', '-D', '2'], ['ib_write_bw', '-c', 'UC', '-n', '50'],
    ['ib_send_bw', '-c', 'UD', '-D', '2']]
CONTENTS_UNDER_FAULTS = [['verbs_check', '-L'], ['ibv_rc_pingpong', '-c'],
                         ['ibv_srq_pingpong', '-c']]

COUNT = 50
ODD_SIZE = 10001  # not a multiple of an MTU
# Maximum packets of all UC messages of a program, or of one message of verbs_check: a UC client sends them all at
# once, and QEMU drops frames while the rings of vmxnet3 are full.
UC_PACKETS = 200
UC_MESSAGE_PACKETS = 64


def count_of(argv, mtu):
    if 'UC' not in argv:
        return COUNT
    return max(5, min(COUNT, UC_PACKETS * mtu // ODD_SIZE))  # perftest's minimum is 5


def perftest(argv, mtu):
    """Adds the arguments for a path MTU, except for given ones."""
    size = str(mtu - 1 if 'UD' in argv else ODD_SIZE)
    words = [*argv, '-F', '-m', str(mtu)]
    if argv[0].startswith('ib_atomic'):
        return [*words, '-n', str(COUNT), *PATIENT]
    if '-a' in argv:
        return [*words, '-n', '5', *PATIENT]
    if '-s' not in argv:
        words += ['-s', size]
    if not {'-n', '-D'} & set(argv):
        words += ['-n', str(count_of(argv, mtu))]
    # Unreliable services have no timeouts.
    return words if '-c' in argv else words + PATIENT


def with_contents(argv, mtu):
    if argv[0] == 'verbs_check':
        most = ['-x', str(UC_MESSAGE_PACKETS * mtu)] if 'UC' in argv else []
        return [*argv, '-m', str(mtu), *most]
    if argv[0] == 'ibv_ud_pingpong':
        return [*argv, '-s', str(mtu), '-n', str(COUNT)]
    return [*argv, '-m', str(mtu), '-s', str(ODD_SIZE), '-n', str(COUNT)]
