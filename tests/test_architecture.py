"""The pure core imports nothing above it, and starting up loads nothing heavy."""

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
PURE = (
    "answers",
    *(f"answers.{name}" for name in ("extract", "kinds", "normalize", "parse", "calculator", "exact")),
    *(f"ladder.{name}" for name in ("vote", "tiers")),
    *("runs.stats", "errors", "models.base"),
)
THIRD_PARTY = {"pydantic", "click", "rich", "openai", "httpx2", "sympy", "math_verify", "xllamacpp"}
HEAVY = {"openai", "httpx2", "sympy", "math_verify", "xllamacpp", "rich", "pydantic", "asyncio", "click"}


def imports(module: str) -> set[str]:
    stem = PACKAGE / module.replace(".", "/")
    path = stem / "__init__.py" if stem.is_dir() else stem.with_suffix(".py")
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def test_the_pure_core_imports_only_itself_and_the_standard_library():
    for module in PURE:
        for name in imports(module):
            assert name.split(".")[0] not in THIRD_PARTY, f"{module} imports {name}"
            if name.startswith("kace."):
                assert name.removeprefix("kace.") in PURE, f"{module} imports {name}"
            assert name not in {"os", "pathlib", "socket", "subprocess", "time", "random"}, f"{module} imports {name}"


def loaded_by(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stdout.split("\n")[-2].split()}


def test_importing_kace_loads_nothing_heavy():
    assert not loaded_by("import kace") & HEAVY


def test_help_loads_nothing_heavy():
    help_ = "from kace.cli import app\ntry:\n app(['--help'])\nexcept SystemExit: pass"
    assert not loaded_by(help_) & {"openai", "httpx2", "sympy", "math_verify", "xllamacpp"}


def test_every_public_name_resolves():
    for name in kace.__all__:
        assert getattr(kace, name) is not None


def test_no_public_class_name_is_defined_twice():
    homes: dict[str, list[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(path.name)
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


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
