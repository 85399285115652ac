# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
A recording of a terminal as an animated SVG: each line of text appears when it appeared in the terminal. CSS moves the
picture, without JavaScript, in an <img> too. A viewer that does not animate shows all lines.
"""
import dataclasses
import os
import pty
import subprocess
import time
import xml.etree.ElementTree
from xml.sax.saxutils import escape

PROMPT = '$ '
# Pixels. Most monospace fonts are 0.6 em wide; none in use is wider than 0.62 em.
FONT_SIZE = 13
LINE_HEIGHT = 17
CHARACTER_WIDTH = 8.06
MARGIN = 14
# Seconds for which the whole text stays before the animation starts again.
REST = 10

STYLE = """\
text{font:%dpx ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre;fill:#1f2328}
rect{fill:#f6f8fa;stroke:#d0d7de}
.command{fill:#0550ae;font-weight:bold}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}rect{fill:#161b22;stroke:#30363d}.command{fill:#79c0ff}}
@media(prefers-reduced-motion:reduce){g{animation:none!important}}
""" % FONT_SIZE


@dataclasses.dataclass
class Line:
    seconds: float  # since the first command was typed
    text: str
    command: bool = False


def record(commands):
    """Runs commands in a terminal. Returns their lines and those of their output; raises for a command that fails."""
    start = time.monotonic()
    lines = []
    for command in commands:
        lines.append(Line(time.monotonic() - start, PROMPT + command, command=True))
        lines += run(command, start)
    return lines


def run(command, start):
    master, slave = pty.openpty()
    process = subprocess.Popen(['bash', '-c', command], stdin=subprocess.DEVNULL, stdout=slave, stderr=slave)
    os.close(slave)
    lines = []
    rest = ''
    while True:
        try:
            read = os.read(master, 65536)
        except OSError:  # EIO: the command has closed the terminal
            break
        *complete, rest = (rest + read.decode()).replace('\r\n', '\n').split('\n')
        lines += [Line(time.monotonic() - start, text.expandtabs()) for text in complete]
    os.close(master)
    if process.wait():
        raise SystemExit('\n'.join([f'{command}: status {process.returncode}', *(line.text for line in lines), rest]))
    return lines + ([Line(time.monotonic() - start, rest.expandtabs())] if rest else [])


def frames(lines):
    """The lines by the hundredth of a second in which they appeared."""
    grouped = {}
    for number, line in enumerate(lines):
        grouped.setdefault(round(line.seconds, 2), []).append((number, line))
    return sorted(grouped.items())


def element(number, line):
    name = ' class="command"' if line.command else ''
    return f'<text x="{MARGIN}" y="{MARGIN + FONT_SIZE + number * LINE_HEIGHT}"{name}>{escape(line.text.rstrip())}</text>'


def svg(lines, title):
    width = round(2 * MARGIN + CHARACTER_WIDTH * max(len(line.text) for line in lines))
    height = 2 * MARGIN + LINE_HEIGHT * len(lines)
    total = lines[-1].seconds + REST
    style, body = [STYLE], []
    for count, (seconds, group) in enumerate(frames(lines)):
        style.append(f'@keyframes k{count}{{0%{{opacity:0}}{100 * seconds / total:.2f}%{{opacity:1}}}}\n')
        body.append(f'<g style="animation:k{count} {total:.2f}s step-end infinite">\n'
                    + '\n'.join(element(number, line) for number, line in group) + '\n</g>\n')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img">\n<title>{escape(title)}</title>\n'
            f'<style>{"".join(style)}</style>\n'
            f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="6"/>\n{"".join(body)}</svg>\n')


def texts(path):
    """The texts of a recording by command, in their order on the screen."""
    found = {}
    for text in xml.etree.ElementTree.parse(path).iter('{http://www.w3.org/2000/svg}text'):
        content = text.text or ''
        if text.get('class') == 'command':
            output = found.setdefault(content.removeprefix(PROMPT), [])
        else:
            output.append(content)
    return found
