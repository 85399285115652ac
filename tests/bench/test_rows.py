#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Tests rows.py, machine_rows.py and vm_rows.py: names are unique, and each limit and peer has a measure."""
import collections
import unittest

import measure  # It sets the path of what the tables import.
import machine_rows
import rows
import vm_rows

UNITS = {'s', 'B/s', '/s', 'B', 'B/instruction', 'instructions', 'CPU', '/message', 'share', 'frames'}


class Tables(unittest.TestCase):
    """The tables for this machine and for virtual machines."""

    TABLES = rows, machine_rows, vm_rows

    def test_names_are_unique(self):
        for table in self.TABLES:
            names = collections.Counter([row.name for row in table.ROWS] + list(table.PEERS))
            self.assertEqual([name for name, times in names.items() if times > 1], [])

    def test_limits_and_peers_have_measures(self):
        for table in self.TABLES:
            for row in table.ROWS:
                self.assertLessEqual(set(row.beside), set(table.PEERS), row.name)
                self.assertEqual(len(row.beside), len(set(row.beside)), row.name)

    def test_all_measures_are_used(self):
        for table in self.TABLES:
            self.assertEqual(set(table.PEERS), {name for row in table.ROWS for name in row.beside})

    def test_units_are_known(self):
        for table in self.TABLES:
            self.assertLessEqual({row.unit for row in table.ROWS}, UNITS)


class Peers(unittest.TestCase):
    """Limits and peers of certain rows."""

    def test_operations_with_response_have_a_write_of_the_same_path(self):
        answered = [row for row in rows.ROWS if row.group == 'latency'
                    and row.name.startswith(('read latency', 'fetch-and-add latency'))
                    and not row.name.endswith('in packets')]
        self.assertEqual(len(answered), 2)
        for row in answered:
            write, = [rows.PEERS[name] for name in row.beside
                      if getattr(rows.PEERS[name], 'argv', [''])[0] == 'ib_write_lat']
            self.assertEqual(write.transport, row.measure.transport, row.name)

    def test_other_methods_are_no_limits(self):
        limits = [name for name, measured in rows.PEERS.items() if isinstance(measured, measure.Limit)]
        self.assertEqual([name for name in limits if name.startswith(('TCP', 'UCX', rows.RING))], [])
        self.assertIn('copy + CRC-32, 64 KiB', limits)

    def test_iperf_writes_the_size_of_its_name(self):
        for name, size in rows.SIZES.items():
            beside = [peer for row in rows.ROWS if row.name == f'write bandwidth, {name}'
                      for peer in row.beside if isinstance(rows.PEERS[peer], measure.Iperf)]
            said = 'TCP loopback, 1 MiB writes' if name == '8 MiB' else f'TCP loopback, {name}'
            self.assertEqual(beside, [said])
            self.assertEqual(rows.PEERS[said].size, min(size, measure.Iperf.MOST))

    def test_latency_rows_have_tcp_as_peer(self):
        for row in rows.ROWS:
            if row.group == 'latency' and 'by events' not in row.name:
                self.assertIn('TCP loopback, polled, one way', row.beside, row.name)

    def test_polled_latency_rows_have_a_ring_as_peer(self):
        """A ring one way, or there and back for operations with a response."""
        rings = {row.name: [name for name in row.beside if name.startswith('DPDK ring')]
                 for row in rows.ROWS if row.group == 'latency'}
        self.assertEqual(rings['write latency, 2 B'], ['DPDK ring, one way'])
        self.assertEqual(rings['send latency, 2 B'], ['DPDK ring, one way'])
        for end in '', ', in packets':
            for name in 'read latency, 2 B', 'fetch-and-add latency':
                self.assertEqual(rings[name + end], ['DPDK ring, there and back'])
        self.assertEqual(rows.PEERS['DPDK ring, there and back'].ways, 2)

    def test_idle_rows_have_their_target(self):
        for row in rows.ROWS:
            idle = isinstance(row.measure, (rows.Idle, rows.IdleByCable))
            self.assertEqual('0.1 %' in row.beside, idle, row.name)

    def test_each_operation_has_a_cost_row_in_packets(self):
        names = {row.name: row.measure for row in rows.ROWS if row.group == 'cost' and row.unit == 'B/s'}
        for operation in 'write', 'send', 'read':
            for transport, end in ('auto', ''), ('packet', ', in packets'):
                run = names[f'{operation} bytes for a CPU second, 64 KiB{end}'].make(5)
                self.assertEqual((run.argv[0], run.transport), (f'ib_{operation}_bw', transport))
        self.assertEqual(len(names), 6)

    def test_idle_memory_rows_use_a_new_daemon(self):
        idle = {row.name: row for row in rows.ROWS if 'an idle QP' in row.name}
        self.assertEqual([row.measure.argv[1] for row in idle.values()], ['idle', 'shared', 'urxed'])
        self.assertEqual({tuple(row.beside) for row in idle.values()}, {('4 KiB', )})
        # A used daemon would already have its tables in memory.
        self.assertIsInstance(idle['memory of urxed for an idle QP'].measure, measure.JoinedAnew)

    def test_perftest_message_count_is_a_multiple_of_the_window(self):
        name = 'send rate, 8 B, ib_send_bw, 1024 QPs'
        row, = [row for row in rows.ROWS if row.name == name]
        one, = [rows.PEERS[name] for name in row.beside]
        sent = []
        for argv in one.argv, row.measure.argv:
            count, messages, window = [int(argv[argv.index(option) + 1]) for option in ('-q', '-n', '-t')]
            self.assertEqual(messages % window, 0)  # otherwise perftest hangs
            sent.append((count, window, count * messages))
        self.assertEqual(sent, [(1, 16, 1600000), (1024, 16, 1638400)])

    def test_rows_that_wake_a_thread_have_no_cache_line_limit(self):
        row, = [row for row in rows.ROWS if row.name == 'write latency, 2 B, in packets']
        self.assertEqual([name for name in row.beside if name.startswith('cache line')], [])

    def test_tcp_uses_the_cable_of_urxe(self):
        cables = {row.name: row.measure.cable.cable for row in rows.ROWS
                  if row.group == 'cable' and isinstance(row.measure.cable, rows.Veth)}
        for row in rows.ROWS:
            if row.name in cables:
                self.assertEqual({rows.PEERS[name].uplink for name in row.beside if name.startswith('TCP')},
                                 {cables[row.name]}, row.name)
                self.assertEqual('no checksums' in row.name, 'bare' in cables[row.name])
        self.assertEqual(len(set(cables.values())), 4)

    def test_bare_port_is_the_limit_of_an_engine(self):
        found = [row for row in rows.ROWS if row.group == 'cable' and row.name.startswith('send latency')]
        self.assertEqual(len(found), 4)
        for row in found:
            limit = rows.PEERS[row.beside[0]]
            self.assertIsInstance(limit, measure.Limit)
            self.assertIs(limit.cable, row.measure.cable, row.name)
            self.assertEqual((limit.options, list(row.measure.options)), (['--bare'], []))

    def test_daemons_are_a_limit_of_messages_through_urxed_only(self):
        found = [row.name for row in rows.ROWS if rows.RELAY in row.beside]
        self.assertEqual(found, [f'send latency, 2 B, veth, af_packet {rows.THROUGH_URXED}'])
        self.assertIsInstance(rows.PEERS[rows.RELAY], measure.Limit)

    def test_tcp_uses_only_the_offloads_that_its_name_says(self):
        beside = collections.Counter()
        for row in rows.ROWS:
            for suffix, offloads in [(', GSO', ('gso',)), (', all offloads', measure.SEGMENTATION)]:
                tcp = [name for name in row.beside if getattr(rows.PEERS[name], 'offloads', ()) == offloads]
                self.assertEqual(tcp, [name for name in row.beside if name.endswith(suffix)], row.name)
                if tcp:
                    plain = rows.PEERS[tcp[0].removesuffix(suffix)]
                    self.assertEqual((plain.uplink, plain.offloads), (rows.PEERS[tcp[0]].uplink, ()))
                    beside[row.group, suffix] += len(tcp)
        # Bandwidth and cost, of each uplink.
        self.assertEqual(beside, {(group, suffix): number for group, number in [('network', 9), ('cable', 6)]
                                  for suffix in (', GSO', ', all offloads')})


unittest.main()
