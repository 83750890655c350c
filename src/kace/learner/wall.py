"""The capability wall: a learner's process opens the files it was given, and no others.

Python tells an audit hook of every file before it is opened, whichever library asks. A hook cannot be taken out again,
so once the wall stands, no prompt, card or bug can make this process read an evaluation split.
"""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from kace.errors import KaceError

SYSTEM = ("/dev", "/proc", "/sys", "/etc", "/usr", "/lib", "/lib64", "/bin", "/opt/ssl")
"""Where the interpreter, its libraries, certificates and time zones live. Nobody keeps problems there."""


NEW = (getattr(os, "O_TMPFILE", os.O_EXCL), os.O_EXCL)
"""Ways of opening that can only make a file, such as a scratch file: there is nothing to read in one."""


class Walled(KaceError, PermissionError):
    """A file that the learner was not given."""


def raise_wall(given: Iterable[Path]) -> None:
    """From now on this process opens only the given files and folders, and what Python itself needs."""
    allowed = tuple(sorted({_real(path) for path in (*given, *_interpreter())}))

    def hook(event: str, args: tuple[object, ...]) -> None:
        if event != "open" or not isinstance(args[0], (str, bytes, os.PathLike)) or _makes(args[2]):
            return
        path = _real(Path(os.fsdecode(args[0])))
        inside = any(path == root or path.startswith(f"{root}{os.sep}") for root in allowed)
        if not inside and not Path(path).is_dir():  # a folder opened for a scratch file in it holds nothing to read
            raise Walled(f"the learner was not given {path}", fix="it reads its training file and its own folders only")

    sys.addaudithook(hook)


def _interpreter() -> list[Path]:
    found = [*sysconfig.get_paths().values(), *site.getsitepackages(), site.getusersitepackages()]
    found += [sys.prefix, sys.base_prefix, sys.exec_prefix, str(Path(__file__).parents[1])]
    # Folders on the import path hold libraries, except the working folder, which `python -m` puts there.
    found += [path for path in sys.path if path and _real(Path(path)) != _real(Path.cwd())]
    return [Path(path) for path in (*found, *SYSTEM)]


def _makes(flags: object) -> bool:
    return isinstance(flags, int) and any(flags & new == new for new in NEW)


def _real(path: Path) -> str:
    return os.path.realpath(path)
