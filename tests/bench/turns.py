# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
The order of measurements, and their evaluation. The machine's speed changes within minutes, so a row and its limits
and peers are measured next to each other, as a turn; a ratio is the median of the turns' ratios. A limit, which is
fast, is measured right before and right after the row, and its figure is the mean of both.
"""
import json
import os
import statistics

import conditions
from measure import Limit, Never, Others, Unavailable, is_shared

FORMAT = 4  # of a file of samples
LINE = 'cache line, one way'  # measured with every row, as the machine's state
# Below this time, in seconds, the CPUs count as near. The CPUs of a virtual machine may share a last-level cache at one
# time and not at another: on the machine of the tables a line takes 40 to 75 ns, or 150 to 230 ns.
NEAR = 100e-9


class Samples:
    """
    The turns of each row; with a path, the file also has the turns of earlier calls. under: the conditions of new
    samples, which must equal those of the file; None if no sample is added.
    """

    def __init__(self, path=None, under=None):
        self.path = path
        self.conditions = under
        # name of a row -> [{'own': figure, 'state': {name: figures}, 'beside': {name: figure}}]
        self.turns = {}
        if path and (under is None or os.path.exists(path)):
            self.load()

    def load(self):
        with open(self.path, encoding='utf-8') as file:
            try:
                kept = json.load(file)
            except ValueError:
                raise ValueError('the file has no samples of the benchmark') from None
        if not isinstance(kept, dict) or kept.get('format') != FORMAT:
            raise ValueError('no samples of this version of the benchmark')
        differ = conditions.differing(kept['conditions'], self.conditions or kept['conditions'])
        if differ:
            raise ValueError(f'its samples are of another build or machine, with another {", ".join(differ)}')
        self.conditions = kept['conditions']
        self.turns = kept['turns']

    def of(self, row):
        return self.turns.get(row.name, [])

    def add(self, row, turn):
        self.turns.setdefault(row.name, []).append(turn)

    def keep(self):
        """Writes the file after each turn, so an interrupted call keeps its samples."""
        if not self.path:
            return
        with open(f'{self.path}.new', 'w', encoding='utf-8') as file:
            json.dump({'format': FORMAT, 'conditions': self.conditions, 'turns': self.turns}, file, indent=1)
        os.replace(f'{self.path}.new', self.path)


class Rounds:
    """Measures rows. measures: name -> measure of a limit or peer; tell(text) prints progress."""

    def __init__(self, bench, measures, samples, tell):
        self.bench = bench
        self.measures = measures
        self.samples = samples
        self.tell = tell
        self.missing = {}  # name -> reason of missing figures

    def take(self, name, measure):
        """A figure, or None. An unavailable measure is not repeated."""
        if name in self.missing:
            return None
        self.tell(name)
        try:
            return measure.measure(self.bench)
        except Unavailable as reason:
            self.missing[name] = str(reason)
            return None

    def is_limit(self, name):
        return isinstance(self.measures[name], Limit)

    def take_limits(self, names):
        return {name: self.take(name, self.measures[name]) for name in names}

    def take_turn(self, row):
        """Measures a row between its limits, without peers."""
        if row.name in self.missing:
            return None
        limits = list(dict.fromkeys([LINE, *filter(self.is_limit, row.beside)]))
        before = self.take_limits(limits)
        others = Others(self.bench)
        own = self.take(row.name, row.measure)
        if own is None:
            return None
        others = others.share()
        after = self.take_limits(reversed(limits))
        lines = [line for line in (before[LINE], after[LINE]) if line is not None]
        turn = {'own': own, 'state': {'cache_line': lines, 'others': [others]},
                'beside': {name: (before[name] + after[name]) / 2 for name in limits
                           if None not in (before[name], after[name])}}
        self.samples.add(row, turn)
        self.samples.keep()
        return turn

    def add_peers(self, row, turn, shared):
        """Adds the peers' figures. A peer that takes seconds is measured once for consecutive rows."""
        for name in row.beside:
            if self.is_limit(name):
                continue
            value = shared[name] if name in shared else self.take(name, self.measures[name])
            if value is not None:
                turn['beside'][name] = value
        self.samples.keep()
        return {name: turn['beside'][name] for name in row.beside
                if name in turn['beside'] and is_shared(self.measures[name])}

    def take_round(self, rows):
        """Measures peers after each row, or after all rows if switching to peers takes long."""
        shared = {}
        for batch in [rows] if self.bench.PEERS_LAST else [[row] for row in rows]:
            for row, turn in [(row, self.take_turn(row)) for row in batch]:
                if turn:
                    shared = self.add_peers(row, turn, shared)


def spread(values):
    return {'median': statistics.median(values), 'least': min(values), 'most': max(values)}


def ratio(turns, name):
    """The ratios of turns with both figures; without a ratio to 0."""
    ratios = [turn['own'] / turn['beside'][name] for turn in turns if turn['beside'].get(name)]
    found = spread(ratios) if ratios else dict.fromkeys(['median', 'least', 'most'])
    return {'ratio': found['median'], 'ratio_least': found['least'], 'ratio_most': found['most']}


def compared(turns, name):
    values = [turn['beside'][name] for turn in turns if name in turn['beside']]
    return {'name': name, 'rounds': len(values), **spread(values), **ratio(turns, name)}


def state(turns):
    """The machine's state in the turns: cache line times, and the CPU share of other programs."""
    found = {what: [figure for turn in turns for figure in turn['state'][what]]
             for what in ('cache_line', 'others')}
    return {what: spread(figures) for what, figures in found.items()} if all(found.values()) else None


def names_beside(row, turns):
    """Names of limits and peers in at least one turn."""
    return [name for name in row.beside if any(name in turn['beside'] for turn in turns)]


def figures(turns):
    """urxe's figures, and the number of turns."""
    return {'rounds': len(turns), **spread([turn['own'] for turn in turns])}


def distance(turn):
    """Near or far, if all cache line times of the turn agree, or None."""
    found = {'near' if line < NEAR else 'far' for line in turn['state']['cache_line']}
    return found.pop() if len(found) == 1 else None


def by_distance(row, turns):
    """The row's figures of near turns and of far turns, if both exist."""
    parts = {where: [turn for turn in turns if distance(turn) == where] for where in ('near', 'far')}
    if not all(parts.values()):
        return {}
    return {where: {**figures(part), 'beside': [{'name': name, **ratio(part, name)}
                                                for name in names_beside(row, part)]}
            for where, part in parts.items()}


def result(row, turns):
    return {'name': row.name, 'group': row.group, 'unit': row.unit, **figures(turns), 'state': state(turns),
            **by_distance(row, turns),
            'beside': [compared(turns, name) for name in names_beside(row, turns)]}


def results(rows, samples):
    return [result(row, samples.of(row)) for row in rows if samples.of(row)]


def never_measured(rows, measures):
    """Limits and peers without a possible measure: name -> reason. Also for kept samples."""
    return {name: measures[name].reason for row in rows for name in row.beside
            if isinstance(measures[name], Never)}


def whole_state(rows, samples):
    return state([turn for row in rows for turn in samples.of(row)])


def number(found):
    """The least number of rounds of all rows; each row has its own number as well."""
    return min((row['rounds'] for row in found), default=0)
