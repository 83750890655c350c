"""Values are made once, however many threads ask for them."""

from __future__ import annotations

import operator
import threading
from concurrent.futures import ThreadPoolExecutor

from kace.view.once import Once


def test_a_value_is_made_once_though_many_ask_at_once() -> None:
    made, all_here = [], threading.Barrier(8)

    def make(source: list[int]) -> int:
        made.append(source)
        return len(made)

    once, source = Once(make, 2), [1]

    def ask(_: int) -> int:
        all_here.wait(30)
        return once.of(source)

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(ask, range(8))) == {1}
    assert len(made) == 1


def test_equal_sources_are_not_the_same_unless_told_so() -> None:
    assert Once(id, 4).of([1]) != Once(id, 4).of([1])
    apart, alike = Once(lambda source: object(), 4), Once(lambda source: object(), 4, operator.eq)
    assert apart.of([1]) is not apart.of([1])
    assert alike.of((1, 2)) is alike.of((1, 2))


def test_only_the_latest_are_kept() -> None:
    once = Once(lambda source: object(), 2, operator.eq)
    first = once.of(1)
    once.of(2)
    assert once.of(1) is first
    once.of(3)
    assert once.of(1) is first
    once.of(2)
    once.of(3)
    assert once.of(1) is not first
