"""Write the sets that the package ships, or draw new starter problems.

python -m problems                                          # writes src/kace/data/*.jsonl.gz
python -m problems --n 1000 --seed 5 --split test --out FILE  # 1,000 new starter problems
"""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from kace.files import DATA, write_atomic
from kace.problems import BUNDLED, SPLITS, Problem, problem_rows
from problems.starter.generate import draw_problems, starter_problems
from problems.techniques.generate import technique_problems

GENERATORS: Mapping[str, Callable[[str], tuple[Problem, ...]]] = {
    "starter": starter_problems,
    "starter-1000": lambda split: tuple(draw_problems({"train": 200, "test": 1000}[split], 1, split)),
    "techniques": technique_problems,
}


def file_content(problems: Iterable[Problem]) -> bytes:
    """Return problems as the bytes of a JSONL file."""
    return "".join(f"{row}\n" for row in problem_rows(problems)).encode()


def write_bundled(folder: Path = DATA) -> None:
    """Write every split of the bundled sets, where it changed.

    Files are compared unpacked, since compressed bytes depend on the version of zlib.
    """
    for name, splits in BUNDLED.items():
        for split in splits:
            path = folder / f"{name}-{split}.jsonl.gz"
            content = file_content(GENERATORS[name](split))
            if not path.is_file() or gzip.decompress(path.read_bytes()) != content:
                write_atomic(path, gzip.compress(content, mtime=0))


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, help="how many new starter problems to draw")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--split", choices=SPLITS, default="test", help="its wordings and families")
    parser.add_argument("--out", type=Path, help="the file to write")
    arguments = parser.parse_args()
    if arguments.n is None:
        write_bundled()
    elif arguments.out is None:
        parser.error("--n needs --out")
    else:
        write_atomic(arguments.out, file_content(draw_problems(arguments.n, arguments.seed, arguments.split)))


if __name__ == "__main__":
    main()
