"""User errors: one line that says what is wrong, where, and the fix.

    KaceError                exit 1, something outside the program refused
    ├── UsageError           exit 2, the command or the configuration is wrong
    │   └── DataError        exit 2, a file the user gave cannot be read as what it should be
    ├── BudgetExceeded       exit 1, a cap was reached; everything paid for is kept
    ├── Outstanding          exit 0, requests wait for replies that somebody writes; nothing is wrong
    └── Submitted            exit 0, batches are under way; nothing is wrong

A failed attempt is not an error: it is an `Attempt` with an outcome (see `kace.ladder.record`).
"""

from __future__ import annotations


class KaceError(Exception):
    """An error that the user can fix; `fix` says how."""

    exit_code = 1

    def __init__(self, message: str, *, fix: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.message}. Fix: {self.fix}" if self.fix else self.message


class UsageError(KaceError):
    """The command line, an environment variable or the configuration file is wrong."""

    exit_code = 2


class DataError(UsageError):
    """A file the user named is missing, empty or malformed; the message carries file and line."""


class BudgetExceeded(KaceError):
    """A cap on calls or money was reached before the work was done."""


class Outstanding(KaceError):
    """Requests lie in an exchange folder without a reply. The same command resumes once the replies are there."""

    exit_code = 0

    def __init__(self, requests: tuple[str, ...]) -> None:
        self.requests = requests  # paths of the request files, each once and in order
        what = f"1 request without a reply: {requests[0]}"
        if len(requests) > 1:
            what = f"{len(requests)} requests without a reply: {requests[0]} and {len(requests) - 1} more"
        super().__init__(
            what,
            fix="write each reply into the file that its request names, then run the same command",
        )


class Submitted(KaceError):
    """Batches are under way at their provider. The same command collects them once they have ended."""

    exit_code = 0
