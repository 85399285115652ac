#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Tests text.py: remarks about rows of fewer rounds and about near and far rounds."""
import contextlib
import io
import unittest

import text


def figures(rounds, median):
    return {'rounds': rounds, 'median': median, 'least': median, 'most': median}


def part(rounds, median, **ratios):
    """A row's near or far part, with its ratios."""
    return {**figures(rounds, median), 'beside': [{'name': name, 'ratio': ratio} for name, ratio in ratios.items()]}


def row(name, rounds, *beside, **parts):
    return {'name': name, 'unit': 's', **figures(rounds, 1e-6), 'state': None, 'beside': list(beside), **parts}


def peer(name, rounds):
    return {'name': name, **figures(rounds, 2e-6), 'ratio': 0.5, 'ratio_least': 0.4, 'ratio_most': 0.6}


def printed(found, asked, missing=None):
    """The printed lines, without alignment."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        text.print_table(found, missing or {}, asked, None)
    return [' '.join(line.split()) for line in output.getvalue().splitlines()]


class Table(unittest.TestCase):
    """Lines of the table."""

    def lines(self, *arguments):
        """Lines of rows, limits and peers, without the first and the last line."""
        return printed(*arguments)[1:-1]

    def test_fewer_rounds_are_marked(self):
        found = [row('whole', 3, peer('late', 2), peer('early', 3)), row('part', 1, peer('with it', 1))]
        whole, late, early, part, with_it = self.lines(found, 3)
        self.assertTrue(late.endswith('0.5 (0.4-0.6), 2 rounds'), late)
        self.assertTrue(part.endswith('us 1 round'), part)
        for line in whole, early, with_it:
            self.assertNotIn('round', line)

    def test_all_rows_may_have_fewer_rounds(self):
        line, = self.lines([row('row', 2)], 3)
        self.assertTrue(line.endswith('2 rounds'), line)

    def test_kept_rounds_count(self):
        first, second = self.lines([row('kept', 7), row('new', 2)], 2)
        self.assertNotIn('round', first)
        self.assertTrue(second.endswith('2 rounds'), second)
        self.assertTrue(printed([row('kept', 7)], 2)[-1].startswith('medians of 7 rounds'))

    def test_near_and_far_follow_their_row(self):
        found = [row('row', 5, peer('peer', 5), near=part(3, 1e-6), far=part(1, 4e-6))]
        _, near, far, beside = self.lines(found, 5)
        self.assertEqual((near, far), ('near 1.000 us 1.000 us 1.000 us 3 rounds',
                                       'far 4.000 us 4.000 us 4.000 us 1 round'))
        self.assertTrue(beside.startswith('peer '))

    def test_near_and_far_ratios_follow_their_ratio(self):
        found = [row('row', 5, peer('peer', 4), peer('late', 5),
                     near=part(3, 1e-6, peer=1.0625, late=None), far=part(1, 4e-6, peer=0.2))]
        beside, late = self.lines(found, 5)[-2:]
        self.assertTrue(beside.endswith(' 0.5 (0.4-0.6), near 1.06, far 0.2, 4 rounds'), beside)
        self.assertTrue(late.endswith(' 0.5 (0.4-0.6)'), late)

    def test_missing_figures_are_explained(self):
        self.assertIn('not measured: x: no x', printed([row('row', 1)], 1, {'x': 'no x'}))


unittest.main()
