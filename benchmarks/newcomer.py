"""Go the way of a new user: from an empty environment through the commands of the first page.

    python benchmarks/newcomer.py [FOLDER]

Clones this repository, builds the wheel, installs it alone into an empty environment, and runs every step there
with a scripted model. Stops at the first step that fails. Where chromium is installed, it photographs the pages of
the viewer in light, in dark and at the width of a phone, to be looked at. Needs a package index, and some minutes.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DICE = ("--model", "scripted/dice?sides=40")
VAN = "A van drives to a market at 20 km/h and back at 60 km/h. What is its average speed for the round trip, in km/h?"
SIZES = {"light": (1100, 1500), "dark": (1100, 1500), "phone": (500, 1500)}


class Newcomer:
    """A person with an empty folder and a terminal."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        self.bin = folder / "empty" / "bin"
        given = dict(os.environ)  # noqa: TID251
        self.env = {name: value for name, value in given.items() if not name.startswith(("KACE_", "PYTHON"))}
        cache = str(self.home / "cache")
        self.env |= {"PATH": f"{self.bin}:{given['PATH']}", "KACE_CACHE_DIR": cache}

    def type(self, *words: object, has: str = "", fails: bool = False) -> str:
        """Run a command in the home folder; check how it ends and what it prints."""
        began = time.monotonic()
        line = [str(word) for word in words]
        done = subprocess.run(line, cwd=self.home, env=self.env, capture_output=True, text=True)
        printed = done.stdout + done.stderr
        shown = " ".join(line)
        if bool(done.returncode) != fails or has not in printed:
            sys.exit(f"FAILED: {shown}\n{printed}")
        print(f"{time.monotonic() - began:6.1f} s  {shown[:110]}", flush=True)
        return printed

    def install(self) -> None:
        """Clone, build the wheel, and install it alone into an empty environment."""
        clone = self.folder / "clone"
        self.type("git", "clone", "--quiet", ROOT, clone)
        self.type(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", clone / "dist", clone)
        (wheel,) = (clone / "dist").glob("*.whl")
        self.type(sys.executable, "-m", "venv", self.bin.parent)
        self.type("pip", "install", "--quiet", "--disable-pip-version-check", wheel)
        shutil.copytree(clone / "docs", self.home / "docs")

    def look_around(self) -> None:
        """Replay the demo, solve a problem, write a card and try it."""
        self.type("kace", "-h", has="First: kace demo")
        began = time.monotonic()
        self.type("kace", "demo", "--replay", "--out", "demo", has="4 of 7 with the tree")
        assert time.monotonic() - began < 10, "the replay takes less than ten seconds"
        self.type("kace", "solve", VAN, "--tree", "starter", "--explain", *DICE, has="-- sent to MS 1, MS 2, MS 3")
        self.type("kace", "tree", "init", "mine", has="kace tree new-card mine")
        self.type("kace", "tree", "new-card", "mine", "--file", "docs/examples/average-speed.md", has="kace tree try")
        self.type("kace", "tree", "try", "mine", VAN, "--answer", "30", *DICE, has="with 1 card")

    def measure(self) -> None:
        """Evaluate without the card and with it, compare, and ask what learning would take."""
        data = ("--data", "docs/examples/average-speed.jsonl", *DICE)
        self.type("kace", "eval", *data, "--dry-run", has="nothing was spent")
        self.type("kace", "eval", *data, "--out", "runs/without", has="next:")
        self.type("kace", "eval", "--system", "kace", "--tree", "mine", *data, "--out", "runs/with", has="cards ")
        self.type("kace", "report", "runs/without", "runs/with", has="kace and tiered are")
        bad = self.home / "bad.jsonl"
        bad.write_text('{"prompt": "1 + 1?", "gold": "2"}\n')
        self.type("kace", "eval", "--data", bad, *DICE, has="fields: prompt, gold", fails=True)
        self.type("kace", "data", "split", "docs/examples/average-speed.jsonl", "--out", "data", has="train.jsonl")
        teach = ("--teacher", "anthropic/claude-sonnet-4-5", "--model", "openai/gpt-4.1-mini", "--out", "learned")
        many = self.home / "many.jsonl"
        rows = [{"problem": f"What is {n} times {n + 2}?", "answer": str(n * (n + 2))} for n in range(40)]
        many.write_text("".join(json.dumps(row) + "\n" for row in rows))
        self.type("kace", "learn", "--train", many, *teach, "--dry-run", has="USD")
        letters = ("--teacher", "exchange/inbox", "--set", "wait=false", "--quick", "--out", "learned")
        self.type("kace", "learn", "--train", many, *letters, *DICE, has="kace view inbox")

    def serve(self) -> None:
        """Serve the card to a client."""
        command = ("kace", "serve", "--tree", "mine", "--port", "0", "--model", "scripted/steady")
        with subprocess.Popen(command, cwd=self.home, env=self.env, stderr=subprocess.PIPE, text=True) as server:
            assert server.stderr
            url = server.stderr.readline().partition(" on ")[2].split("/v1")[0]
            with urllib.request.urlopen(url) as answer:
                assert b"kace is running" in answer.read()
            body = json.dumps({"model": "kace", "messages": [{"role": "user", "content": VAN}]}).encode()
            with urllib.request.urlopen(urllib.request.Request(f"{url}/v1/chat/completions", body)) as answer:
                assert json.load(answer)["kace"]["exit_path"]
            server.send_signal(signal.SIGINT)
            assert "POST /v1/chat/completions 200" in server.stderr.read()
        print("   served and logged a request", flush=True)

    def look(self) -> None:
        """Export the pages, and photograph some."""
        opened = ("mine", "starter", "runs", "demo", "inbox")
        self.type("kace", "view", *opened, "--export", "pages", has="pages/index.html")
        chromium = shutil.which("chromium") or shutil.which("chromium-browser")
        pages: dict[str, Path] = {}
        for page in sorted((self.home / "pages").glob("*.html")):
            pages.setdefault("-".join(page.stem.split("-")[:3]), page)
        for name, page in pages.items() if chromium else ():
            for look, (width, height) in SIZES.items():
                dark = ["--blink-settings=preferredColorScheme=0"] if look == "dark" else []
                picture = self.folder / "pictures" / f"{name}-{look}.png"
                picture.parent.mkdir(exist_ok=True)
                options = ("--headless=new", "--no-sandbox", "--hide-scrollbars", f"--window-size={width},{height}")
                shot = [str(chromium), *options, *dark, f"--screenshot={picture}", page.as_uri()]
                subprocess.run(shot, capture_output=True, check=True)
        made = f"{len(pages)} pages in {self.folder / 'pictures'}" if chromium else "none: no chromium"
        print(f"   pictures: {made}", flush=True)


def main() -> None:
    """Go all the way in FOLDER, or in a temporary one."""
    folder = Path(sys.argv[1]) if sys.argv[1:] else Path(tempfile.mkdtemp(prefix="kace-newcomer-"))
    newcomer = Newcomer(folder.resolve())
    newcomer.install()
    newcomer.look_around()
    newcomer.measure()
    newcomer.serve()
    newcomer.look()
    print(f"All of it works: {folder}")


if __name__ == "__main__":
    main()
