"""Count how many everyday problems use a word, for the relevance gate: writes src/kace/retrieval/background.txt.

python benchmarks/background_words.py gsm8k_train.jsonl math_l45_train.jsonl
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from kace.ladder.relevance import BACKGROUND, words
from kace.problems import load_problems

LEAST = 5  # a word of fewer problems weighs as much as an unknown one, or nearly


def main(paths: list[Path]) -> None:
    """Write the table."""
    problems = [problem for path in paths for problem in load_problems(path)]
    counts: Counter[str] = Counter()
    for problem in problems:
        counts.update(set(words(problem.text)))
    kept = [(word, count) for word, count in counts.most_common() if count >= LEAST]
    kept.sort(key=lambda each: (-each[1], each[0]))
    lines = [f"{len(problems)} problems", *(f"{word} {count}" for word, count in kept)]
    BACKGROUND.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(kept):,} words of {len(problems):,} problems")


if __name__ == "__main__":
    main([Path(each) for each in sys.argv[1:]])
