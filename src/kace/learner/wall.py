"""The capability wall: an audit hook, which cannot be removed, lets this process open the files it was given only."""

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
    needed = [*sysconfig.get_paths().values(), *site.getsitepackages(), site.getusersitepackages(), *SYSTEM]
    needed += [sys.prefix, sys.base_prefix, sys.exec_prefix, str(Path(__file__).parents[1])]
    # Folders on the import path hold libraries, except the working folder, which `python -m` puts there.
    needed += [path for path in sys.path if path and os.path.realpath(path) != os.path.realpath(Path.cwd())]
    allowed = tuple(sorted({os.path.realpath(path) for path in (*map(str, given), *needed)}))

    def hook(event: str, args: tuple[object, ...]) -> None:
        if event != "open" or not isinstance(args[0], (str, bytes, os.PathLike)):
            return
        if isinstance(args[2], int) and any(args[2] & new == new for new in NEW):
            return
        path = os.path.realpath(os.fsdecode(args[0]))
        inside = any(path == root or path.startswith(f"{root}{os.sep}") for root in allowed)
        if not inside and not Path(path).is_dir():  # a folder opened for a scratch file in it holds nothing to read
            raise Walled(f"the learner was not given {path}", fix="it reads its training file and its own folders only")

    sys.addaudithook(hook)
