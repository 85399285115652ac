#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Tests turns.py: order of measurements, ratios, and the file of samples."""
import json
import os
import tempfile
import unittest

import turns
from measure import Iperf, Limit, Never, Unavailable
from rows import Row


class Bench:
    """A fake bench that records the order of measurements."""

    PEERS_LAST = False

    def __init__(self):
        self.order = []

    @staticmethod
    def worked():
        return 0.0


class Played:
    """A fake measure with given figures; None means unavailable."""

    def __init__(self, name, *figures):
        self.name = name
        self.figures = list(figures)

    def measure(self, bench):
        bench.order.append(self.name)
        figure = self.figures.pop(0)
        if figure is None:
            raise Unavailable(f'no {self.name}')
        return figure


class PlayedLimit(Played, Limit):
    """A fake limit."""


class PlayedShared(Played, Iperf):
    """A fake peer that takes seconds."""


def row(name, beside, *figures):
    return Row('group', name, 's', Played(name, *figures), beside)


class Turns(unittest.TestCase):
    """Rounds with fake measures."""

    def setUp(self):
        self.bench = Bench()
        self.samples = turns.Samples()

    def play(self, rows, rounds=1, **beside):
        """Plays rounds without cache line times."""
        state = {turns.LINE: PlayedLimit('state', *[1.0] * 100)}
        course = turns.Rounds(self.bench, beside | state, self.samples, lambda text: None)
        for _ in range(rounds):
            course.take_round(rows)
        return course

    def order(self):
        return [name for name in self.bench.order if name != 'state']

    def one_result(self, rows):
        found, = turns.results(rows, self.samples)
        return found

    def test_ratio_is_the_median_of_the_rounds(self):
        # Machine and row are five times slower in the second round, so the ratio stays the same.
        rows = [row('row', ['peer'], 2.0, 10.0, 3.0)]
        self.play(rows, 3, peer=Played('peer', 1.0, 5.0, 1.0))
        peer, = self.one_result(rows)['beside']
        self.assertEqual(peer, {'name': 'peer', 'rounds': 3, 'median': 1.0, 'least': 1.0, 'most': 5.0,
                                'ratio': 2.0, 'ratio_least': 2.0, 'ratio_most': 3.0})

    def test_limit_is_measured_before_and_after(self):
        rows = [row('row', ['peer', 'inner', 'outer'], 6.0)]
        self.play(rows, peer=Played('peer', 2.0), inner=PlayedLimit('inner', 1.0, 3.0),
                  outer=PlayedLimit('outer', 1.0, 5.0))
        self.assertEqual(self.order(), ['inner', 'outer', 'row', 'outer', 'inner', 'peer'])
        self.assertEqual([(beside['name'], beside['median'], beside['ratio'])
                          for beside in self.one_result(rows)['beside']],
                         [('peer', 2.0, 3.0), ('inner', 2.0, 3.0), ('outer', 3.0, 2.0)])

    def test_limit_is_measured_again_for_each_row(self):
        rows = [row('one', ['limit'], 1.0), row('other', ['limit'], 1.0)]
        self.play(rows, limit=PlayedLimit('limit', 1.0, 1.0, 4.0, 4.0))
        self.assertEqual([found['beside'][0]['ratio'] for found in turns.results(rows, self.samples)],
                         [1.0, 0.25])

    def test_consecutive_rows_share_a_slow_peer(self):
        rows = [row('a', ['slow'], 1.0, 1.0), row('b', ['slow'], 1.0, 1.0), row('c', [], 1.0, 1.0),
                row('d', ['slow'], 1.0, 1.0)]
        self.play(rows, 2, slow=PlayedShared('slow', 1.0, 2.0, 3.0, 4.0))
        self.assertEqual(self.order(), ['a', 'slow', 'b', 'c', 'd', 'slow'] * 2)
        self.assertEqual([turn['beside']['slow'] for name in 'abd'
                          for turn in self.samples.turns[name]], [1.0, 3.0, 1.0, 3.0, 2.0, 4.0])

    def test_peers_come_last_if_switching_is_slow(self):
        self.bench.PEERS_LAST = True
        rows = [row('a', ['x'], 1.0), row('b', ['y'], 1.0)]
        self.play(rows, x=Played('x', 2.0), y=Played('y', 4.0))
        self.assertEqual(self.order(), ['a', 'b', 'x', 'y'])
        self.assertEqual([found['beside'][0]['ratio'] for found in turns.results(rows, self.samples)],
                         [0.5, 0.25])

    def test_unavailable_measure_is_not_repeated(self):
        rows = [row('row', ['peer'], 1.0, 1.0), row('none', [], None)]
        course = self.play(rows, 2, peer=Played('peer', None))
        self.assertEqual(course.missing, {'peer': 'no peer', 'none': 'no none'})
        self.assertEqual(self.one_result(rows)['beside'], [])
        self.assertEqual(self.order(), ['row', 'peer', 'none', 'row'])

    def test_never_measurable_figure_is_reported_for_its_rows(self):
        measures = {'never': Never('no figure'), 'peer': Played('peer', 1.0)}
        rows = [row('a', ['peer'], 1.0), row('b', ['peer', 'never'], 1.0)]
        self.assertEqual(turns.never_measured(rows[:1], measures), {})
        self.assertEqual(turns.never_measured(rows, measures), {'never': 'no figure'})
        self.assertEqual(self.play(rows[1:], **measures).missing, {'never': 'no figure'})

    def test_share_of_zero_gives_no_ratio(self):
        rows = [row('row', ['peer'], 1.0, 1.0)]
        self.play(rows, 2, peer=Played('peer', 0.0, 0.0))
        self.assertIsNone(self.one_result(rows)['beside'][0]['ratio'])

    def test_each_row_has_its_number_of_rounds(self):
        rows = [row('a', ['peer', 'late'], 1.0, 1.0), row('b', [], 1.0, None)]
        self.play(rows, 1, peer=Played('peer', 1.0), late=Played('late', None))
        self.play(rows, 1, peer=Played('peer', 1.0), late=Played('late', 1.0))
        a, b = found = turns.results(rows, self.samples)
        self.assertEqual((a['rounds'], [(beside['name'], beside['rounds']) for beside in a['beside']]),
                         (2, [('peer', 2), ('late', 1)]))
        self.assertEqual(b['rounds'], 1)
        self.assertEqual(turns.number(found), 1)

    def play_lines(self, rows, lines, **beside):
        """Plays rounds with these cache line times before and after each row."""
        limit = PlayedLimit('state', *[line for pair in lines for line in pair])
        course = turns.Rounds(self.bench, beside | {turns.LINE: limit}, self.samples, lambda text: None)
        for _ in lines:
            course.take_round(rows)

    def test_near_and_far_rounds_are_separated(self):
        # The fourth round is near and far, the last one is at the border.
        lines = [(50e-9, 99e-9), (150e-9, 200e-9), (60e-9, 70e-9), (50e-9, 150e-9), (100e-9, 100e-9)]
        rows = [row('row', ['peer'], 2.0, 9.0, 4.0, 50.0, 8.0)]
        self.play_lines(rows, lines, peer=Played('peer', 1.0, 3.0, 1.0, 1.0, 4.0))
        found = self.one_result(rows)
        self.assertEqual(found['near'], {
            'rounds': 2, 'median': 3.0, 'least': 2.0, 'most': 4.0,
            'beside': [{'name': 'peer', 'ratio': 3.0, 'ratio_least': 2.0, 'ratio_most': 4.0}]})
        self.assertEqual(found['far'], {
            'rounds': 2, 'median': 8.5, 'least': 8.0, 'most': 9.0,
            'beside': [{'name': 'peer', 'ratio': 2.5, 'ratio_least': 2.0, 'ratio_most': 3.0}]})
        self.assertEqual((found['rounds'], found['most']), (5, 50.0))

    def test_near_rounds_alone_are_not_repeated(self):
        rows = [row('row', [], 1.0, 1.0)]
        self.play_lines(rows, [(50e-9, 60e-9), (50e-9, 150e-9)])
        self.assertFalse({'near', 'far'} & set(self.one_result(rows)))

    def test_turns_without_a_cache_line_are_neither_near_nor_far(self):
        rows = [row('row', [], 1.0, 1.0, 1.0)]
        self.play_lines(rows, [(50e-9, 60e-9), (150e-9, 150e-9)])
        self.play_lines(rows, [(None, )])
        found = self.one_result(rows)
        self.assertEqual((found['rounds'], found['near']['rounds'], found['far']['rounds']), (3, 1, 1))

    def test_state_covers_all_rows(self):
        rows = [row('a', [], 1.0), row('b', [], 1.0)]
        course = turns.Rounds(self.bench, {turns.LINE: PlayedLimit('state', 1.0, 9.0, 2.0, 4.0)},
                              self.samples, lambda text: None)
        course.take_round(rows)
        state = turns.whole_state(rows, self.samples)
        self.assertEqual(state['cache_line'], {'median': 3.0, 'least': 1.0, 'most': 9.0})
        self.assertGreaterEqual(state['others']['least'], 0.0)
        self.assertEqual([found['state']['cache_line']['median']
                          for found in turns.results(rows, self.samples)], [5.0, 3.0])


def conditions(library='0a', kernel='Linux 6.1', commit='abc'):
    return {'build': {'liburxe.so': library}, 'machine': {'kernel': kernel, 'commit': commit}}


class File(unittest.TestCase):
    """The file of --keep."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, 'samples')

    def play(self, rows, *figures, **under):
        course = turns.Rounds(Bench(), {turns.LINE: PlayedLimit('state', 1.0, 1.0),
                                        'peer': Played('peer', *figures)},
                              turns.Samples(self.path, conditions(**under)), lambda text: None)
        course.take_round(rows)

    def test_file_joins_calls(self):
        self.play([row('row', ['peer'], 2.0)], 1.0)
        rows = [row('row', ['peer'], 8.0)]
        self.play(rows, 2.0)
        found, = turns.results(rows, turns.Samples(self.path))
        self.assertEqual((found['most'], found['beside'][0]['ratio']), (8.0, 3.0))
        self.assertEqual(found['rounds'], 2)

    def test_interrupted_call_keeps_its_rows(self):
        rows = [row('row', ['peer'], 2.0)]
        with self.assertRaises(IndexError):
            self.play(rows)
        found, = turns.results(rows, turns.Samples(self.path))
        self.assertEqual((found['median'], found['beside']), (2.0, []))

    def test_other_files_are_refused(self):
        for content in ({'write latency, 2 B': [1.0]}, [], {'format': 3, 'turns': {}}):
            with open(self.path, 'w', encoding='utf-8') as file:
                json.dump(content, file)
            with self.assertRaises(ValueError):
                turns.Samples(self.path, conditions())

    def test_samples_of_another_build_or_machine_are_refused(self):
        rows = [row('row', ['peer'], 2.0)]
        self.play(rows, 1.0)
        for name, under in ('liburxe.so', {'library': '0b'}), ('kernel', {'kernel': 'Linux 6.2'}):
            with self.assertRaisesRegex(ValueError, f'another {name}$'):
                turns.Samples(self.path, conditions(**under))
        self.play([row('row', ['peer'], 2.0)], 1.0, commit='a later one')
        kept = turns.Samples(self.path)
        self.assertEqual(turns.results(rows, kept)[0]['rounds'], 2)
        self.assertEqual(kept.conditions, conditions())

    def test_kept_samples_are_shown_without_a_build(self):
        with self.assertRaises(FileNotFoundError):
            turns.Samples(self.path)
        self.play([row('row', ['peer'], 2.0)], 1.0, library='one that is gone')
        self.assertEqual(turns.Samples(self.path).conditions, conditions(library='one that is gone'))


unittest.main()
