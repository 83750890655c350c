"""The capability wall: an audit hook, which cannot be removed, keeps this process to the files it was given.

It sees what Python does by name: opening, linking, renaming, mapping, starting programs. It does not see what native
code opens by itself, nor what was open before; SECURITY.md says what is promised.
"""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from pathlib import Path

from kace.errors import KaceError

PACKAGE = Path(__file__).parents[1]
SYSTEM = ("/dev", "/proc", "/sys", "/etc", "/usr", "/lib", "/lib64", "/bin", "/opt/ssl")
"""Where the interpreter, its libraries, certificates and time zones live. Nobody keeps problems there."""
NEW = (getattr(os, "O_TMPFILE", os.O_CREAT | os.O_EXCL), os.O_CREAT | os.O_EXCL)
"""Ways of opening that can only make a file, such as a scratch file: there is nothing to read in one."""
NAMED = {"open": 1, "sqlite3.connect": 1, "os.link": 2, "os.rename": 2}
"""Events that reach files by name, and how many names they have. After two names come the folders these are in."""
SCRATCH = (":memory:", "")
"""Names of databases that SQLite makes for itself: in memory, and in a file without a name."""
PROGRAMS = ("os.system", "os.exec", "os.posix_spawn", "os.spawn", "pty.spawn")


class Walled(KaceError, PermissionError):
    """A file that the learner was not given."""


def raise_wall(given: Iterable[Path]) -> None:
    """From now on this process opens only the given files and folders, and what Python itself needs."""
    needed = [
        *sysconfig.get_paths().values(),
        *site.getsitepackages(),
        site.getusersitepackages(),
        *SYSTEM,
    ]
    needed += [sys.prefix, sys.base_prefix, sys.exec_prefix, str(PACKAGE)]
    # Folders on the import path hold libraries, except the working folder, which `python -m` puts there.
    needed += [
        path
        for path in sys.path
        if path and os.path.realpath(path) != os.path.realpath(Path.cwd())
    ]
    allowed = {
        os.path.realpath(path) for path in (*map(str, given), *needed)
    }  # and folders that this process makes

    def refuse(name: object) -> None:
        path = _real(name)
        if path not in allowed and not any(
            str(above) in allowed for above in Path(path).parents
        ):
            raise Walled(
                f"the learner was not given {path}",
                fix="it reads its training file and its own folders only",
            )

    def hook(event: str, args: Sequence[object]) -> None:
        if event == "open" and (
            _makes(args[2]) or (args[1] is not None and Path(_real(args[0])).is_dir())
        ):
            return  # of a folder, `open` reads nothing itself: what it is opened for is another event
        if names := NAMED.get(event):
            for name in args[:names]:
                refuse(name if name not in SCRATCH else "/dev")
            if names == 2 and set(args[names:]) != {-1}:
                raise Walled(
                    "the learner names files in full",
                    fix="leave out src_dir_fd and dst_dir_fd",
                )
        elif event == "os.mkdir" and args[2] == -1:
            folder = _real(args[0])
            allowed.update(() if os.path.lexists(folder) else (folder,))
        elif event == "mmap.__new__" and args[0] != -1:
            mapped = f"/proc/self/fd/{args[0]}"
            refuse(mapped if os.path.exists(mapped) else "/dev")  # noqa: PTH110 - a scratch file has no name any more
        elif event in PROGRAMS or (event == "subprocess.Popen" and not _ours(args)):
            raise Walled(
                f"the learner starts no other program ({event})",
                fix="only kace's own workers are started",
            )

    sys.addaudithook(hook)


def _makes(flags: object) -> bool:
    return isinstance(flags, int) and any(flags & new == new for new in NEW)


def _real(name: object) -> str:
    """Where a name leads; a descriptor was a name before."""
    return (
        os.path.realpath(os.fsdecode(name))
        if isinstance(name, (str, bytes, os.PathLike))
        else "/dev"
    )


def _ours(popen: Sequence[object]) -> bool:
    """Whether a program is a worker of ours: this interpreter, and a file of this package."""
    executable = popen[0]
    words = popen[1]
    if executable != sys.executable or not isinstance(words, (list, tuple)):
        return False
    script = next(
        (
            word
            for word in words[1:]
            if isinstance(word, str) and word not in ("-P", "-W", "ignore")
        ),
        "",
    )
    return Path(script).is_absolute() and Path(script).resolve().is_relative_to(
        PACKAGE.resolve()
    )
