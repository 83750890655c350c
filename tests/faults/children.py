"""Children that do a piece of work, and may be killed at it."""

import os
import traceback
from collections.abc import Callable


def forked(work: Callable[[], object]) -> int:
    """The id of a child that does the work and ends with 0, or with 1 where it failed."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return child
