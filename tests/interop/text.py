# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A fixture's text, and changes of it with the numbers that the devices chose."""
import ipaddress
import re

# Words of lines that a device executes. All other lines, and lines with a comment that begins with ENGINE, are for
# the engine only.
DEEDS = ('recv', 'send', 'wc', 'set', 'memory', 'state')
ENGINE = '# urxe:'


def set_word(line, name, value):
    """Sets the value after a name in a line; appends both if the line lacks the name."""
    replaced, count = re.subn(rf'\b({name} +)\S+', rf'\g<1>{value}', line)
    return replaced if count else f'{line} {name} {value}'


class Text:
    """Lines are numbered from 1, as in the parser of fixtures."""

    def __init__(self, path):
        with open(path, encoding='utf-8') as file:
            self.lines = file.read().splitlines()

    def words(self, number):
        return self.lines[number - 1].split('#')[0].split()

    def deed(self, number):
        """The station that executes this line, or None."""
        words = self.words(number)
        if words[1:2] and words[1] in DEEDS and ENGINE not in self.lines[number - 1]:
            return words[0]
        return None

    def numbered(self, *start):
        """Numbers of the lines that begin with these words."""
        return [number for number in range(1, len(self.lines) + 1)
                if self.words(number)[:len(start)] == list(start)]

    def change(self, number, name, value):
        self.lines[number - 1] = set_word(self.lines[number - 1], name, value)

    def bytes(self):
        return ('\n'.join(self.lines) + '\n').encode()

    def stacks(self):
        """The kinds of stations a and b of a recorded capture, or None."""
        for number in self.numbered('capture', 'recorded'):
            return self.words(number)[2:4]
        return None

    def set_kernel(self, kernel):
        number, = self.numbered('capture', 'recorded')
        self.lines[number - 1] = ' '.join(self.lines[number - 1].rsplit(' ', 1)[:1] + [kernel])

    def lost(self):
        return [int(self.words(number)[1]) for number in self.numbered('lost')]

    def address(self, side):
        number, = self.numbered(side, 'address')
        return number, ipaddress.ip_address(self.words(number)[2]).packed

    def set_numbers(self, side, qpns, keys, windows):
        for number, qpn in zip(self.numbered('qp'), qpns):
            self.change(number, f'{side}-qpn', qpn)
        for number, key in zip(self.numbered(side, 'mr'), keys):
            self.change(number, 'key', key)
        for number, key in zip(self.numbered(side, 'mw'), windows):
            words = self.words(number)
            self.replace_key(int(words[words.index('key') + 1], 0), int(key, 0))

    def replace_key(self, old, new):
        """Replaces a window's key, also with other tags; the device chooses the first tag."""
        def other(match):
            value = int(match[0], 0)
            if value >> 8 != old >> 8:
                return match[0]
            return f'{new if value == old else new & ~0xff | value & 0xff:#x}'
        self.lines = [re.sub(r'\b0x[0-9a-f]+\b', other, line) for line in self.lines]

    def write(self, path):
        with open(path, 'wb') as file:
            file.write(self.bytes())
