"""Values that take long: one thread works, everybody else is shown what is there."""

from __future__ import annotations

import threading
import time

import pytest

from kace.errors import UsageError
from kace.report.later import REST, Later


def test_a_quick_value_is_there_at_once_and_worked_out_once():
    later: Later[int] = Later()
    made: list[int] = []
    for _ in range(3):
        found = later.ask("x", 1, lambda: made.append(1) or 42)
        assert (found.value, found.fresh) == (42, True)
    assert made == [1]


def test_a_slow_value_is_waited_for_no_longer_than_patience():
    later, go = Later[int](), threading.Event()

    def work():
        go.wait(600)
        return 42

    found = later.ask("x", 1, work, patience=0.05)
    assert found == (None, False)
    go.set()
    assert later.ask("x", 1, work, patience=None).value == 42


def test_many_who_ask_at_once_share_one_thread():
    later, made = Later[int](), []

    def work():
        made.append(1)
        time.sleep(0.05)
        return 42

    found: list[int | None] = []
    threads = [
        threading.Thread(target=lambda: found.append(later.ask("x", 1, work, patience=None).value)) for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1] and found == [42] * 20


def test_an_older_value_is_shown_until_the_new_one_is_there():
    later, go = Later[str](), threading.Event()
    later.ask("x", 1, lambda: "old", patience=None)

    def work():
        go.wait(600)
        return "new"

    found = later.ask("x", 2, work, patience=0.05)
    assert (found.value, found.fresh) == ("old", False)
    go.set()
    assert later.ask("x", 2, work, patience=None).value == "new"


def test_a_value_that_keeps_changing_leaves_the_machine_its_time():
    later, made = Later[int](), []

    def work():
        made.append(time.monotonic())
        time.sleep(0.05)
        return 1

    until = time.monotonic() + 0.6
    state = 0
    while time.monotonic() < until:
        state += 1
        later.ask("x", state, work, patience=0.0)
        time.sleep(0.005)
    assert 1 <= len(made) <= 0.6 / (0.05 * (1 + REST)) + 2


def test_what_goes_wrong_reaches_whoever_asks_until_the_state_changes():
    later: Later[int] = Later()

    def refuse():
        raise UsageError("no")

    def break_():
        raise RuntimeError("bug")

    for _ in range(2):
        with pytest.raises(UsageError, match="no"):
            later.ask("a", 1, refuse, patience=None)
    with pytest.raises(RuntimeError, match="bug"):
        later.ask("b", 1, break_, patience=None)
    assert later.ask("b", 2, lambda: 42, patience=None).value == 42


def test_only_so_many_values_are_kept():
    later: Later[int] = Later(keep=3)
    made: list[int] = []
    for number in (*range(5), 4, 3, 0):
        later.ask(number, 1, lambda number=number: made.append(number) or number, patience=None)
    assert made == [0, 1, 2, 3, 4, 0]
