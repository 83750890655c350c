"""Start-up: `import kace` and `kace --help`, as medians of fresh processes, beside a bare interpreter.

python benchmarks/bench_startup.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

RUNS = 15


def median_seconds(command: list[str]) -> float:
    subprocess.run(command, check=True, capture_output=True)  # the first one warms the disk
    times = []
    for _ in range(RUNS):
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def main() -> None:
    bare = median_seconds([sys.executable, "-c", "pass"])
    imported = median_seconds([sys.executable, "-c", "import kace"])
    helped = median_seconds([str(Path(sys.executable).parent / "kace"), "--help"])
    print(f"n = {RUNS} processes each, medians")
    print(f"  bare interpreter  {bare:.3f} s")
    print(f"  import kace       {imported - bare:.3f} s over the interpreter (aim: under 0.15)")
    print(f"  kace --help       {helped:.3f} s in all (aim: under 0.3), {helped / bare:.1f} times the interpreter")


if __name__ == "__main__":
    main()
