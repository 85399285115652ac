#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Tests markdown.py: digits, units, names and cells."""
import unittest

import markdown
from measure import Given, Iperf, Limit
import machine_rows
import rows

MEASURES = {'line': Limit('bounce'), 'bound': Given(1), 'tcp': Iperf(2), 'ucx, 2 B': Iperf(2)}
MACHINE = {'processor': 'AMD EPYC', 'hypervisor': None, 'processors': 2, 'kernel': 'Linux 6.1',
           'packages': {}, 'compiler': None, 'build_type': 'release', 'commit': None}


def spread(median, least=None, most=None, rounds=3):
    return {'rounds': rounds, 'median': median, 'least': median if least is None else least,
            'most': median if most is None else most}


def peer(name, ratios, *values, **more):
    found = dict(zip(('ratio', 'ratio_least', 'ratio_most'), ratios))
    return {'name': name, **spread(*values, **more), **found}


def part(figures, **ratios):
    """A row's near or far part, with its ratios."""
    return {**figures, 'beside': [{'name': name, 'ratio': ratio} for name, ratio in ratios.items()]}


def row(name, unit, *values, beside=(), state=None, group='group', **parts):
    return {'name': name, 'group': group, 'unit': unit, **spread(*values), 'state': state,
            'beside': list(beside), **parts}


class Figures(unittest.TestCase):
    """The text of a figure."""

    def test_figures_have_three_digits(self):
        for value, text in [(0.04351, '0.0435'), (0.4, '0.4'), (90.24, '90.2'), (99.96, '100'),
                            (999.4, '999'), (999.6, '1,000'), (16384.2, '16,384'), (0.00012, '0.00012'),
                            (0, '0')]:
            self.assertEqual(markdown.digits(value), text)

    def test_units_scale_with_the_value(self):
        for unit, value, text in [
                ('s', 4.2e-8, '0.042 µs'), ('s', 1.6e-5, '16 µs'), ('s', 1.08e-3, '1.08 ms'),
                ('s', 1.5, '1,500 ms'),
                ('B/s', 9.02e10, '90.2 GB/s'), ('B/s', 3.04e7, '30.4 MB/s'),
                ('/s', 7.912e6, '7.91 M/s'), ('/s', 2.16e5, '216 k/s'), ('B', 4096, '4,096 B'),
                ('B/instruction', 12.346, '12.3 B'), ('instructions', 1543, '1,543'),
                ('CPU', 0.0712, '7.12 %'), ('/message', 1, '1')]:
            self.assertEqual(markdown.shown(unit, value), text)

    def test_all_units_of_the_rows_have_a_name(self):
        for each in [*rows.ROWS, *machine_rows.ROWS]:
            self.assertEqual(markdown.scale(each.unit, 1)[0] == '', each.unit in ('instructions', '/message', 'frames'))

    def test_spread_is_in_the_unit_of_its_median(self):
        self.assertEqual(markdown.shown_spread('s', spread(8e-4, 5e-5, 1.5e-3)), '800 µs (50-1,500)')

    def test_spread_of_equal_texts_is_omitted(self):
        self.assertEqual(markdown.shown_spread('/s', spread(5e6, 5.0001e6, 5.0002e6)), '5 M/s')


class Names(unittest.TestCase):
    """Short names of limits and peers."""

    def test_parts_of_the_row_name_are_omitted(self):
        for of_row, name, text in [
                ('write bandwidth, 64 KiB, in packets', 'memcpy, 64 KiB', 'memcpy'),
                ('write bandwidth, 64 KiB', 'UCX shared memory, put, 64 KiB', 'UCX shared memory, put'),
                ('write latency, 2 B, one machine', 'rdma_rxe, write latency, 2 B, one machine', 'rdma_rxe'),
                ('send rate, 8 B, 64 QPs', 'send rate, 8 B, 1 QP', '1 QP'),
                ('send latency, 2 B', 'UCX tcp, tag', 'UCX tcp, tag'),
                ('a, b', 'b, a', 'b, a')]:
            self.assertEqual(markdown.short(name, row(of_row, 's', 1.0)), text)

    def test_short_names_of_a_row_are_unique(self):
        for table in rows, machine_rows:
            for each in table.ROWS:
                names = [markdown.short(name, {'name': each.name}) for name in each.beside]
                self.assertEqual(len(set(names)), len(names), each.name)


class Cells(unittest.TestCase):
    """Cells of a row: name, own figure, limits, peers, rounds, cache line."""

    def cells(self, *arguments, **more):
        return markdown.cells(row(*arguments, **more), MEASURES)

    def test_limits_and_peers_have_separate_cells(self):
        beside = [peer('tcp', [0.047, 0.0441, 0.0472], 3.38e-6), peer('line', [3.7, 3.7, 3.7], 4.1e-8),
                  peer('bound', [9.96, 9.8, 99.8], 1e-8), peer('ucx, 2 B', [0.5, 0.4, 0.6], 2e-6)]
        _, _, limits, peers, _, _ = self.cells('write, 2 B', 's', 1.6e-7, beside=beside)
        self.assertEqual(limits, 'line 0.041 µs: **3.7**<br>bound 0.01 µs: **10** (9.8-100)')
        self.assertEqual(peers, 'tcp 3.38 µs: **0.047** (0.044-0.047)<br>ucx 2 µs: **0.5** (0.4-0.6)')

    def test_other_implementations_are_no_limits(self):
        for table in rows, machine_rows:
            for name, measure in table.PEERS.items():
                other = name.startswith(('UCX', 'TCP', 'alltoall', 'icoFoam', 'iSCSI', 'migrate tcp', 'ring', 'rdma_rxe'))
                self.assertEqual(not other, isinstance(measure, markdown.BOUNDS), name)

    def test_figures_of_fewer_rounds_show_their_number(self):
        beside = [peer('tcp', [2, 2, 2], 1.0, rounds=1), peer('line', [None] * 3, 0.0, rounds=2)]
        _, _, limits, peers, rounds, _ = self.cells('row', 'CPU', 0.5, beside=beside)
        self.assertEqual((limits, peers, rounds), ('line 0 %, 2 rounds', 'tcp 100 %: **2**, 1 round', '3'))

    def test_near_and_far_figures_are_shown(self):
        own = self.cells('row', '/s', 4e6, 3.4e6, 5.9e6, near=part(spread(5.4e6, 3.7e6, 5.9e6, rounds=7)),
                         far=part(spread(3.4e6, rounds=1)))[1]
        self.assertEqual(own, '4 M/s (3.4-5.9)<br>near 5.4 M/s (3.7-5.9), 7 rounds<br>far 3.4 M/s, 1 round')

    def test_near_and_far_ratios_are_shown(self):
        beside = [peer('line', [9.93, 5, 14], 6.4e-8), peer('tcp', [2, 2, 2], 1e-6),
                  peer('bound', [1, 1, 1], 1e-6)]
        _, _, limits, peers, _, _ = self.cells('row', 's', 1e-6, beside=beside,
                                               near=part(spread(1e-6), line=11.04, tcp=2, bound=None),
                                               far=part(spread(1e-6), line=5, bound=1))
        self.assertEqual(limits, 'line 0.064 µs: **9.9** (5-14), near 11, far 5<br>bound 1 µs: **1**, far 1')
        self.assertEqual(peers, 'tcp 1 µs: **2**, near 2')

    def test_cache_line_time_is_shown(self):
        line = {'cache_line': {'median': 4.55e-8, 'least': 3.7e-8, 'most': 2.04e-7}}
        self.assertEqual(self.cells('row', 's', 1.0, state=line)[5], '46 (37-204)')
        self.assertEqual(self.cells('row', 's', 1.0)[5], '')


class Page(unittest.TestCase):
    """The whole page."""

    def test_each_group_has_a_table(self):
        found = [row(name, 's', median, group=group)
                 for name, median, group in [('one', 1e-6, 'a'), ('two', 2e-6, 'b'), ('three', 3e-6, 'a')]]
        head = 'urxe: median (least-most) | limits: figure, ratio | peers: figure, ratio | rounds | line, ns'
        missing = {'tcp': 'no such\nthing', 'bound': 'nor that'}
        self.assertEqual(markdown.page(found, MEASURES, missing, MACHINE), f'''\
AMD EPYC, 2 processors; Linux 6.1; build type release.

| a | {head} |
| --- | --- | --- | --- | --- | --- |
| one | 1 µs |  |  | 3 |  |
| three | 3 µs |  |  | 3 |  |

| b | {head} |
| --- | --- | --- | --- | --- | --- |
| two | 2 µs |  |  | 3 |  |

Not measured: tcp (no such thing); bound (nor that).
''')


unittest.main()
