# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The benchmark's results as Markdown, with a table for each group."""
import conditions
from crowded import Incast
from failover import Balanced
from hca import IdleDaemon, LatencyOverUrxe, LatencyWithoutHca, StartOfDaemon, StartOfProgram
import machines
from measure import BytesForInstruction, Given, Hook, Instructions, Joined, Limit, Perftest
from station import Station
import text
import vms

# Figures in the column of limits: the best possible figure, the figure without the measured feature, or another
# figure of urxe. Figures of other implementations are peers.
BOUNDS = (Limit, Station, machines.Station, Given, Joined, Perftest, Balanced, Incast, Hook, Instructions, BytesForInstruction,
          vms.Path, StartOfProgram, StartOfDaemon, IdleDaemon, LatencyWithoutHca, LatencyOverUrxe)
HEAD = ['urxe: median (least-most)', 'limits: figure, ratio', 'peers: figure, ratio', 'rounds', 'line, ns']
BREAK = '<br>'  # within a cell


def digits(value, significant=3):
    """A value with this many digits, without an exponent."""
    return f'{value:,.0f}' if value > 10**significant - 1 else f'{value:.{significant}g}'


def scale(unit, value):
    """The unit for a value of this size, and the factor."""
    if unit == 's':
        return ('µs', 1e6) if value < 1e-3 else ('ms', 1e3)
    if unit == 'B/s':
        return ('MB/s', 1e-6) if value < 1e8 else ('GB/s', 1e-9)
    if unit == '/s':
        return ('k/s', 1e-3) if value < 1e6 else ('M/s', 1e-6)
    if unit in ('CPU', 'share'):
        return '%', 100
    return ('B' if unit.startswith('B') else ''), 1


def shown_range(least, most):
    return f' ({least}-{most})' if least != most else ''


def shown(unit, value):
    name, factor = scale(unit, value)
    return f'{digits(value * factor)} {name}'.rstrip()


def shown_spread(unit, figures):
    """Median, least and most in the median's unit."""
    _, factor = scale(unit, figures['median'])
    ends = [digits(figures[which] * factor) for which in ('least', 'most')]
    return shown(unit, figures['median']) + shown_range(*ends)


def short(name, row):
    """The name of a limit or peer, without the parts that the row's name has, too."""
    of_row = row['name'].split(', ')
    return ', '.join(part for part in name.split(', ') if part not in of_row) or name


def shown_ratio(peer, row):
    if peer['ratio'] is None:
        return ''
    median, least, most = [digits(peer[which], 2) for which in ('ratio', 'ratio_least', 'ratio_most')]
    parts = [f', {where} {digits(ratio, 2)}' for where, ratio in text.ratios_by_distance(peer, row)]
    return f': **{median}**{shown_range(least, most)}{"".join(parts)}'


def shown_beside(peer, row):
    figure = f'{short(peer["name"], row)} {shown(row["unit"], peer["median"])}'
    return ', '.join([figure + shown_ratio(peer, row), *text.fewer(peer, row['rounds'])])


def shown_own(row):
    """urxe's figure; also of near and of far rounds, if both exist."""
    parts = [f'{where} {shown_spread(row["unit"], figures)}, {text.count(figures["rounds"])}'
             for where, figures in text.parts(row)]
    return BREAK.join([shown_spread(row['unit'], row), *parts])


def shown_line(state):
    """The time of a cache line's transfer during the rounds."""
    if state is None:
        return ''
    median, least, most = [f'{state["cache_line"][which] * 1e9:.0f}' for which in ('median', 'least', 'most')]
    return median + shown_range(least, most)


def cells(row, measures):
    bounds = [peer for peer in row['beside'] if isinstance(measures[peer['name']], BOUNDS)]
    peers = [peer for peer in row['beside'] if peer not in bounds]
    beside = [BREAK.join(shown_beside(peer, row) for peer in some) for some in (bounds, peers)]
    return [row['name'], shown_own(row), *beside, str(row['rounds']), shown_line(row['state'])]


def table(group, rows, measures):
    lines = [[group, *HEAD], ['---'] * (1 + len(HEAD)), *(cells(row, measures) for row in rows)]
    return ''.join(f'| {" | ".join(line)} |\n' for line in lines)


def page(found, measures, missing, machine):
    """measures: name -> measure of a limit or peer; missing: name -> reason of missing figures."""
    groups = dict.fromkeys(row['group'] for row in found)
    parts = [conditions.described(machine) + '.\n',
             *(table(group, [row for row in found if row['group'] == group], measures) for group in groups)]
    if missing:
        reasons = [f'{name} ({" ".join(reason.split())})' for name, reason in missing.items()]
        parts.append(f'Not measured: {"; ".join(reasons)}.\n')
    return '\n'.join(parts)
