"""Errors meant for the operator: one line that says what is wrong, where, and the fix.

    KaceError                exit 1, something outside the program refused
    ├── UsageError           exit 2, the command or the configuration is wrong
    │   └── DataError        exit 2, a file the user gave cannot be read as what it should be
    └── BudgetExceeded       exit 1, a cap was reached; everything paid for is kept

A failed attempt is not an error: it is an `Attempt` with an outcome (see `kace.attempt`).
"""

from __future__ import annotations


class KaceError(Exception):
    """Something the operator can mend; `fix` says how."""

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
