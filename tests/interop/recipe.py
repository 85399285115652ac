# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Runs the commands of docs/virtual-machines.md in a machine, unchanged."""
import base64
import os
import re

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../docs/virtual-machines.md')
NIC = 'NIC=eth0\n'  # the line of the page that users replace


def commands(title):
    """The indented lines of a section."""
    with open(PAGE, encoding='utf-8') as page:
        section = re.search(rf'^## {re.escape(title)}\n(.*?)(?=^## |\Z)', page.read(),
                            re.MULTILINE | re.DOTALL)[1]
    return ''.join(line[4:] for line in section.splitlines(True) if line.startswith('    '))


def follow(guest, title, nic, others, seconds=120):
    """Runs a section's commands, which must all succeed; returns their output. `others` replace words of the page."""
    text = commands(title).replace(NIC, f'NIC={nic}\n')
    for word, mine in others.items():
        text = text.replace(word, mine)
    script = base64.b64encode(f'PATH=$PATH:/urxe/tools\n{text}'.encode()).decode()
    return guest.run(f'echo {script} | base64 -d >/tmp/recipe && sh -e /tmp/recipe', seconds)
