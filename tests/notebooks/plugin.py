"""What nbval needs to run our notebooks as JupyterLab does; loaded with `-p`, for the notebooks lie outside `tests`."""

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Any

import nbval.kernel
import pytest
from jupyter_client.manager import KernelManager

from tests.notebooks.kernels import sockets
from tests.notebooks.regen import RECORDINGS

_start_new_kernel = nbval.kernel.start_new_kernel
folders = contextlib.ExitStack()
"""What the kernels listen in and run in, deleted at the end."""


def kernel_manager(**settings: Any) -> KernelManager:
    return KernelManager(**settings, **folders.enter_context(sockets()))


def start_new_kernel(*arguments: Any, **settings: Any) -> Any:
    """Start a kernel in a new folder with the recordings, unaware of the test: aware, ipykernel would not capture C's prints."""
    known = os.environ.pop("PYTEST_CURRENT_TEST", None)
    folder = Path(folders.enter_context(tempfile.TemporaryDirectory(prefix="kcontrol-notebook-")))
    (folder / RECORDINGS.name).symlink_to(RECORDINGS)
    try:
        return _start_new_kernel(*arguments, **settings | {"cwd": str(folder)})
    finally:
        if known is not None:
            os.environ["PYTEST_CURRENT_TEST"] = known


def pytest_configure(config: pytest.Config) -> None:
    """Puts the kernel start above in nbval's place."""
    nbval.kernel.start_new_kernel = start_new_kernel
    nbval.kernel.KernelManager = kernel_manager
    config.add_cleanup(folders.close)
