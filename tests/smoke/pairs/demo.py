#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
`./dev demo`: runs Debian's unmodified RDMA programs as server and client by `urxe run`, then programs that
compare the contents of all messages.
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../harness'))
import report  # noqa: E402
from host import Failure, Host, Pair  # noqa: E402

MEASURES = [
    ('RDMA WRITE, 64 KiB', ['ib_write_bw', '-F', '-n', '20000'], report.bandwidth),
    ('SEND, 64 KiB', ['ib_send_bw', '-F', '-n', '20000'], report.bandwidth),
    ('RDMA READ, 64 KiB', ['ib_read_bw', '-F', '-n', '20000'], report.bandwidth),
    ('RDMA WRITE, 2 B', ['ib_write_lat', '-F', '-n', '20000'], report.latency),
]


def version(package):
    result = subprocess.run(['dpkg-query', '-W', '-f', '${Version}', package], check=False,
                            capture_output=True, text=True)
    return result.stdout if result.returncode == 0 else 'of unknown version'


def show_measures(host):
    print(f'\n  {"program":14}{"operation":22}{"bandwidth":>12}{"latency":>12}')
    for operation, argv, figure in MEASURES:
        value = report.measured(lambda argv=argv: Pair(host, host, argv).finish(120)[1], figure)
        bandwidth = latency = ''
        if figure is report.latency:
            latency = f'{value * 1e6:.2f} us'
        else:
            bandwidth = f'{value / 1e9:.2f} GB/s'
        print(f'  {argv[0]:14}{operation:22}{bandwidth:>12}{latency:>12}', flush=True)


def show_contents(host):
    print('\n  contents, compared byte by byte')
    argv = ['ibv_rc_pingpong', '-c']
    for output in Pair(host, host, argv).finish(30):
        report.check_pingpong(output)
    print(f'  {" ".join(argv):24} 1000 messages each way, right', flush=True)
    output = Pair(host, host, [host.verbs_check]).finish(120)[1]
    for line in output.splitlines():
        print(f'  {line}')


def main():
    print(f'urxe0 between two processes on this machine\n'
          f'perftest {version("perftest")}, rdma-core {version("libibverbs1")}, both unmodified', flush=True)
    try:
        with Host(sys.argv[1], daemon=False) as host:
            show_measures(host)
            show_contents(host)
    except Failure as failure:
        print(f'\n{failure}\n\nDEMO FAILED')
        sys.exit(1)
    print('\nDEMO PASSED: every program ran, every byte arrived right')


main()
