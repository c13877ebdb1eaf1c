"""What nbval needs to run our notebooks as JupyterLab does; loaded with `-p`, for the notebooks lie outside `tests`."""

import os
import tempfile
from pathlib import Path
from typing import Any

import nbval.kernel
import pytest

from tests.notebooks.regen import RECORDINGS

_start_new_kernel = nbval.kernel.start_new_kernel


_folders: list[tempfile.TemporaryDirectory[str]] = []


def start_new_kernel(*arguments: Any, **settings: Any) -> Any:
    """Starts a kernel that does not know that it is tested: knowing it, ipykernel would not capture what C code prints.

    Its folder is new, with the recordings in it, as in `regen`: what a chapter shows must not depend on runs of other chapters.
    """
    known = os.environ.pop("PYTEST_CURRENT_TEST", None)
    _folders.append(tempfile.TemporaryDirectory(prefix="kcontrol-notebook-"))
    (Path(_folders[-1].name) / RECORDINGS.name).symlink_to(RECORDINGS)
    try:
        return _start_new_kernel(*arguments, **settings | {"cwd": _folders[-1].name})
    finally:
        if known is not None:
            os.environ["PYTEST_CURRENT_TEST"] = known


def pytest_configure(config: pytest.Config) -> None:
    """Puts the kernel start above in nbval's place."""
    nbval.kernel.start_new_kernel = start_new_kernel
