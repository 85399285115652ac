# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Bandwidth and latency. perftest compares no contents."""
import report
from rdmacm import TOO_EARLY
from row import Connected, Pair, Refusal, Row

PACKAGES = ['perftest']
PORT = 18515


def row(kind, command, **more):
    argv = command.split()
    return kind(server=command, client=f'{command} {{}}',
                check=lambda client, _server: report.check(argv, '', client), **more)


OVER_TCP = [
    # All sizes.
    'ib_send_bw -F -a -n 10',
    'ib_write_bw -F -a -n 10',
    'ib_read_bw -F -a -n 10',
    'ib_send_lat -F -a -n 10',
    'ib_write_lat -F -a -n 10',
    'ib_read_lat -F -a -n 10',
    # With default options, then with single options.
    'ib_send_bw -F',
    'ib_write_bw -F',
    'ib_read_bw -F',
    'ib_send_lat -F',
    'ib_write_lat -F',
    'ib_read_lat -F',
    'ib_atomic_bw -F',
    'ib_atomic_bw -F -A CMP_AND_SWAP',
    'ib_atomic_lat -F',
    'ib_atomic_lat -F -A CMP_AND_SWAP',
    'ib_send_bw -F -d urxe0 -i 1 -x {gid} -S 3 -m 512 -Q 10 -t 64',
    'ib_write_bw -F -d urxe0 -x {gid} -p 18600 -D 2 --report_gbits',
    'ib_write_bw -F -l 16 -n 1600',
    'ib_write_bw -F -s 8 -I 64 -n 5000',
    'ib_write_lat -F -s 8 -I 64',
    'ib_read_bw -F -o 16',
    # Each service. UC SENDs and UD may lose a message, for which perftest would wait for ever: these run for a time.
    'ib_send_bw -F -c UC -D 2',
    'ib_send_bw -F -c UD -D 2',
    'ib_send_lat -F -c UC -D 2',
    'ib_send_lat -F -c UD -D 2',
    'ib_write_bw -F -c UC',
    'ib_write_lat -F -c UC',
    # Events.
    'ib_send_bw -F -e',
    'ib_read_bw -F -e',
    'ib_atomic_bw -F -e',
    'ib_send_lat -F -e',
    'ib_read_lat -F -e',
    'ib_atomic_lat -F -e',
    # The receiver's ring has room for 960 frames while it waits for a processor: 100 messages of 8 KiB are 800.
    'ib_send_bw -F -c UC -e -s 8192 -n 100',
    'ib_send_bw -F -c UD -e -n 100',
    'ib_send_lat -F -c UC -e -n 100',
    'ib_send_lat -F -c UD -e -n 100',
    'ib_send_bw -F -b -e',
    'ib_read_bw -F -b -e',
    # Shared receive queues.
    'ib_send_bw -F --use-srq',
    'ib_send_bw -F --use-srq -q 16 -n 1000',
    'ib_send_lat -F --use-srq',
    # A packet that is lost within a message ends a UC queue pair that has a shared receive queue (IBA 9.9.3, class E).
    'ib_send_bw -F --use-srq -c UC -D 2 -s 512',
    'ib_send_bw -F --use-srq -c UD -D 2',
    'ib_send_lat -F --use-srq -c UD -D 2',
    'ib_send_bw -F --use-srq -e',
    # Bidirectional.
    'ib_send_bw -F -b',
    'ib_write_bw -F -b',
    'ib_read_bw -F -b',
    'ib_atomic_bw -F -b',
    'ib_send_bw -F -b -c UC -D 2',
    'ib_send_bw -F -b -c UD -D 2',
    'ib_write_bw -F -b -c UC',
    # Many queue pairs.
    'ib_send_bw -F -q 64 -n 200',
    'ib_write_bw -F -q 64 -n 200',
    'ib_read_bw -F -q 64 -n 200',
    'ib_atomic_bw -F -q 64 -n 200',
    'ib_write_bw -F -q 64 -n 200 -b',
    'ib_send_bw -F -q 64 -c UC -D 2',
    'ib_send_bw -F -q 64 -c UD -D 2',
    'ib_write_bw -F -q 64 -c UC -n 200',
    # On-demand paging.
    'ib_send_bw -F --odp',
    'ib_write_bw -F --odp',
    'ib_read_bw -F --odp',
    'ib_send_bw -F --odp --use-srq',
    'ib_send_bw -F --odp -c UD -D 2',
]

BY_RDMA_CM = [
    'ib_send_bw -F -R',
    'ib_write_bw -F -R',
    'ib_read_bw -F -R',
    'ib_atomic_bw -F -R',
    'ib_send_lat -F -R',
    'ib_write_lat -F -R',
    'ib_read_lat -F -R',
    'ib_atomic_lat -F -R',
    'ib_send_bw -F -R -c UD -D 2',
    'ib_send_lat -F -R -c UD -D 2',
    'ib_send_bw -F -R -e',
    'ib_read_bw -F -R -e',
    'ib_atomic_bw -F -R -e',
    'ib_send_lat -F -R -e',
    'ib_read_lat -F -R -e',
    'ib_atomic_lat -F -R -e',
    'ib_send_bw -F -R -b',
    'ib_write_bw -F -R -b',
    'ib_read_bw -F -R -b',
    'ib_atomic_bw -F -R -b',
    'ib_send_bw -F -R -q 64 -n 200',
    'ib_write_bw -F -R -q 64 -n 200',
    'ib_read_bw -F -R -q 64 -n 200',
    'ib_atomic_bw -F -R -q 64 -n 200',
    'ib_send_bw -F -R -q 64 -c UD -D 2',
    'ib_send_bw -F -R --use-srq',
    'ib_send_lat -F -R --use-srq',
]

ROWS = [row(Pair, command, port=18600 if '-p 18600' in command else PORT) for command in OVER_TCP]
ROWS += [row(Connected, command, too_early=TOO_EARLY) for command in BY_RDMA_CM]
ROWS += [Row(f'{program} -F -e',
             refusal=Refusal('perftest has no events for RDMA WRITE', 'Events feature not available on WRITE verb'))
         for program in ('ib_write_bw', 'ib_write_lat')]
ROWS += [row(Connected, f'{program} -F -R -c UC',
             refusal=Refusal('perftest does not connect UC by rdma_cm', 'UC is not supported in librdmacm'))
         for program in ('ib_send_bw', 'ib_send_lat', 'ib_write_bw', 'ib_write_lat')]
ROWS += [Row('ib_atomic_bw -F --odp',
             refusal=Refusal('perftest has no on-demand paging for atomics', 'ODP does not support ATOMICS for now'))]
ROWS += [Row('ib_send_bw -F --report-counters=hw_counters/sent_pkts',
             refusal=Refusal('urxe0 has no counters in sysfs; `urxe show counter` has them', 'Unable to access performance counters'))]
ROWS += [row(Pair, f'{program} -F -c XRC', port=PORT,
             refusal=Refusal('librxe has no XRC', 'Error opening XRC domain'))
         for program in ('ib_send_bw', 'ib_write_bw', 'ib_read_bw', 'ib_send_lat')]
ROWS += [row(Pair, 'ib_write_bw -F -c DC', port=PORT,
             refusal=Refusal('DC is a service of one vendor', 'Failed to create QP'))]
ROWS += [Row(f'{program} -F --client -B 02:00:00:00:00:01 -E 02:00:00:00:00:02',
             refusal=Refusal('librxe has no queue pairs for raw Ethernet', 'Failed to create QP'))
         for program in ('raw_ethernet_bw', 'raw_ethernet_lat', 'raw_ethernet_fs_rate')]
ROWS.append(Row('raw_ethernet_burst_lat -F --client -B 02:00:00:00:00:01 -E 02:00:00:00:00:02',
                refusal=Refusal('it sets a rate limit, which perftest itself refuses for latency tests',
                                'SW Rate limiter cann\'t be executed')))
