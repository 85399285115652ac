# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""
A bandwidth test of perftest that runs until the test ends it. So the time that the test's steps take on a busy machine
does not matter.
"""
import report
from host import Failure, Pair, until

SECONDS = 30


class EndlessPair(Pair):
    """Server and client of a bandwidth test, which prints a row of figures each second."""

    def __init__(self, server_host, client_host, argv, *arguments, **options):
        super().__init__(server_host, client_host, ['stdbuf', '-oL', *argv, '--run_infinitely', '-D', '1'], *arguments,
                         **options)

    def rows(self):
        """The figures of the seconds in which messages moved."""
        return [row for row in report.rows(self.client.output()) if row[1]]

    def describe(self):
        return f'{self.server.describe()}\n{self.client.describe()}'

    def go_on(self):
        """Waits for two rows more, of which the second is of a second that began after this call."""
        goal = len(self.rows()) + 2
        until(SECONDS, lambda: len(self.rows()) >= goal or not (self.server.running() and self.client.running()),
              lambda: f'stands still: {self.describe()}')
        if len(self.rows()) < goal:
            raise Failure(f'ended by itself: {self.describe()}')

    def finish(self, seconds=SECONDS):
        """The pair must still exchange messages; ends it."""
        self.go_on()
        self.kill()
