"""Refuses a path for which the operating system refuses `stat` to this user, such as a file in a folder without permission."""

from pathlib import Path

from kcontrol.core.errors import UserError


def check_open(path: Path) -> None:
    """Raise UserError, with the operating system's reason, if `path.stat()` fails, for example in a folder without permission.

    A path that does not exist raises no error.
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as problem:
        raise UserError(f"{path} cannot be read: {problem.strerror}; make it readable, or name another path.") from None
