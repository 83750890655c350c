"""Packages import downwards only, and starting up loads nothing heavy."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import kace

PACKAGE = Path(kace.__file__).parent
ORDER = (
    ("errors", "files", "config"),
    ("answers",),
    ("problems",),
    ("cards",),
    ("models",),
    ("ladder",),
    ("runs",),
    ("learning",),
    ("baselines",),
    ("report",),
    ("serve",),
    ("api",),
    ("cli",),
)
RANK = {name: rank for rank, names in enumerate(ORDER) for name in names}
HEAVY = {"openai", "aiohttp", "sympy", "math_verify", "xllamacpp", "rich", "pydantic", "asyncio", "click"}


def imported_by(path: Path) -> set[str]:
    """The parts of the package that a file imports anywhere, in functions too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        found |= {name.split(".")[1] for name in names if name.startswith("kace.")}
    return found & RANK.keys()


def test_packages_import_downwards_only():
    upwards = []
    for path in PACKAGE.rglob("*.py"):
        part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if part in ("__init__", "__main__"):
            continue
        upwards += [f"{path.name} imports {name}" for name in imported_by(path) if RANK[name] > RANK[part]]
    assert upwards == []


def test_every_part_of_the_package_has_a_place_in_the_order():
    parts = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert parts - RANK.keys() == {"__init__", "__main__"}


def test_config_holds_values_only():
    assert imported_by(PACKAGE / "config.py") <= {"errors", "files"}


def loaded_by(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stdout.split("\n")[-2].split()}


def test_importing_kace_loads_nothing_heavy():
    assert not loaded_by("import kace") & HEAVY


def test_help_loads_nothing_heavy():
    help_ = "from kace.cli import app\ntry:\n app(['--help'])\nexcept SystemExit: pass"
    assert not loaded_by(help_) & {"openai", "aiohttp", "sympy", "math_verify", "xllamacpp"}


def test_every_public_name_resolves():
    for name in kace.__all__:
        assert getattr(kace, name) is not None


def test_the_lock_names_every_extra_that_its_packages_ask_for():
    """Else pip wants the newest release for the extra, and there is no hash of one that came after the lock."""
    lines = (PACKAGE.parents[1] / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pins = (Requirement(line.split(" \\")[0]) for line in lines if line[:1].isalnum())
    locked = {canonicalize_name(pin.name): {canonicalize_name(extra) for extra in pin.extras} for pin in pins}
    asked = [
        (found.name, requirement)
        for found in distributions()
        if canonicalize_name(found.name) in locked
        for requirement in map(Requirement, found.requires or ())
        if requirement.extras and (requirement.marker is None or requirement.marker.evaluate({"extra": ""}))
    ]
    assert asked
    for name, requirement in asked:
        extras = {canonicalize_name(extra) for extra in requirement.extras}
        assert extras <= locked[canonicalize_name(requirement.name)], f"{name} asks for {requirement}: make lock"
