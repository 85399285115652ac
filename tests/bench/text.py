# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The table that `./dev bench` prints to a terminal."""

INDENT = 4 * ' '  # of limits and peers
REMARK = 50  # width of a ratio with its near and far values


def shown(unit, value):
    if unit == 's':
        return f'{value * 1e6:.3f} us' if value < 1 else f'{value:.3f} s'
    if unit == 'B/s':
        return f'{value / 1e9:.3f} GB/s'
    if unit == '/s' and value < 1e6:
        return f'{value / 1e3:.3f} k/s'
    if unit == '/s':
        return f'{value / 1e6:.3f} M/s'
    if unit == 'B':
        return f'{value:.0f} B'
    if unit == 'B/instruction':
        return f'{value:.4f} B'
    if unit in ('instructions', 'frames'):
        return f'{value:.0f}'
    if unit == '/message':
        return f'{value:.2f}'
    return f'{value * 100:.3f} %'


def shown_spread(unit, figures):
    median, least, most = [shown(unit, figures[which]) for which in ('median', 'least', 'most')]
    return f'{median} ({least} to {most})'


def print_line(width, name, unit, figures, remark):
    print(f'{name:{width}}' + ''.join(f'{shown(unit, figures[which]):>14}'
                                      for which in ('median', 'least', 'most')) + f'{remark:>{REMARK}}')


def shown_ratio(peer):
    if peer['ratio'] is None:
        return []
    return [f'{peer["ratio"]:.3g} ({peer["ratio_least"]:.3g}-{peer["ratio_most"]:.3g})']


def shown_state(state):
    """The machine's state during the rounds of a row."""
    if state is None:
        return []
    line, others = [state[what]['median'] for what in ('cache_line', 'others')]
    return [f'line {line * 1e9:.0f} ns', f'others {others * 100:.0f} %']


def count(rounds):
    return f'{rounds} round{"s" if rounds != 1 else ""}'


def fewer(figures, whole):
    """The remark about figures of fewer rounds."""
    return [count(figures['rounds'])] if figures['rounds'] < whole else []


def parts(row):
    """The near and the far part of a row, if both exist."""
    return [(distance, row[distance]) for distance in ('near', 'far') if distance in row]


def ratios_by_distance(peer, row):
    """The near and the far ratio of a row to a limit or peer."""
    return [(distance, found['ratio']) for distance, figures in parts(row) for found in figures['beside']
            if found['name'] == peer['name'] and found['ratio'] is not None]


def shown_by_distance(peer, row):
    return [f'{distance} {ratio:.3g}' for distance, ratio in ratios_by_distance(peer, row)]


def print_row(width, row, whole):
    print_line(width, row['name'], row['unit'], row, ', '.join(shown_state(row['state']) + fewer(row, whole)))
    for distance, figures in parts(row):
        print_line(width, INDENT + distance, row['unit'], figures, count(figures['rounds']))
    for peer in row['beside']:
        print_line(width, INDENT + peer['name'], row['unit'], peer,
                   ', '.join(shown_ratio(peer) + shown_by_distance(peer, row)
                             + fewer(peer, row['rounds'])))


def print_table(found, missing, asked, state):
    """asked: the requested number of rounds."""
    names = [row['name'] for row in found]
    names += [INDENT + peer['name'] for row in found for peer in row['beside']]
    names += [INDENT + distance for row in found for distance, _ in parts(row)]
    width = max(map(len, names), default=0)
    whole = max([asked, *(row['rounds'] for row in found)])
    print(f'{"":{width}}{"median":>14}{"least":>14}{"most":>14}{"ratio":>{REMARK}}')
    for row in found:
        print_row(width, row, whole)
    for name, reason in missing.items():
        print(f'not measured: {name}: {reason}')
    print(f'medians of {count(whole)}, where nothing else is said; a ratio is the figure of urxe over the '
          'one beside it in the same round')
    if state:
        print('the machine meanwhile: a cache line from core to core took '
              f'{shown_spread("s", state["cache_line"])}; others had {shown_spread("CPU", state["others"])} '
              'of a processor')
