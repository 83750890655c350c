"""Go the way of a new user: from an empty environment through the commands of the first page.

    python -m tests.e2e.newcomer [FOLDER]

Clones this repository, builds the wheel, installs it alone into an empty environment, and runs every step there
with a scripted model. Stops at the first step that fails. Needs a package index, and some minutes.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.command import environment

ROOT = Path(__file__).resolve().parents[2]
VAN = "A van drives to a market at 20 km/h and back at 60 km/h. What is its average speed for the round trip, in km/h?"
DATA = "--data docs/examples/average-speed.jsonl"
STEPS = (
    ("kace -h", "First: kace demo"),
    ("kace demo --replay --out demo", "4 of 7 with the tree"),
    (f"kace solve '{VAN}' --tree starter --explain", "-- sent to MS 1, MS 2, MS 3"),
    ("kace tree init mine", "kace tree new-card mine"),
    ("kace tree new-card mine --file docs/examples/average-speed.md", "kace tree try"),
    (f"kace tree try mine '{VAN}' --answer 30", "with 1 card"),
    (f"kace eval {DATA} --dry-run", "nothing was spent"),
    (f"kace eval {DATA} --out runs/without", "next:"),
    (f"kace eval --system kace --tree mine {DATA} --out runs/with", "cards "),
    ("kace report runs/without runs/with", "kace and tiered are"),
    ("kace view mine starter runs demo --export pages", "pages/index.html"),
)
"""Commands, each with what it prints."""


def main() -> None:
    """Go all the way in FOLDER, or in a temporary one."""
    folder = Path(sys.argv[1]) if sys.argv[1:] else Path(tempfile.mkdtemp(prefix="kace-newcomer-"))
    clone, home, empty = (folder.resolve() / name for name in ("clone", "home", "empty"))
    home.mkdir(parents=True)
    env = environment(home, KACE_MODEL="scripted/dice?sides=40")
    env["PATH"] = f"{empty / 'bin'}:{env['PATH']}"
    env.pop("PYTHONPATH", None)
    installing = (
        f"git clone --quiet {ROOT} {clone}",
        f"{sys.executable} -m pip wheel --quiet --no-deps --wheel-dir {clone / 'dist'} {clone}",
        f"{sys.executable} -m venv {empty}",
        f"pip install --quiet --disable-pip-version-check {clone / 'dist'}/*.whl",
        f"cp -r {clone / 'docs'} {home}",
    )
    for line, printed in (*((line, "") for line in installing), *STEPS):
        done = subprocess.run(["bash", "-c", line], cwd=home, env=env, capture_output=True, text=True)
        if done.returncode or printed not in done.stdout + done.stderr:
            sys.exit(f"FAILED: {line}\n{done.stdout}{done.stderr}")
        print(line[:110], flush=True)
    print(f"All of it works: {folder}")


if __name__ == "__main__":
    main()
