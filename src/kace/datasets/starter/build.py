"""Write the bundled splits anew: `python -m kace.datasets.starter.build`."""

from __future__ import annotations

from pathlib import Path

from kace.datasets.starter.family import SPLITS
from kace.datasets.starter.generate import bundle
from kace.datasets.starter.splits import FOLDER, split_path
from kace.problem import problem_rows


def write_splits(folder: Path = FOLDER) -> None:
    """Write the three splits; the same families give the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    for split in SPLITS:
        lines = "".join(f"{row}\n" for row in problem_rows(bundle(split)))
        split_path(split, folder).write_text(lines, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    write_splits()
