"""What nbval needs to run our notebooks as JupyterLab does; loaded with `-p`, for the notebooks lie outside `tests`."""

import os
from typing import Any

import nbval.kernel
import pytest

_start_new_kernel = nbval.kernel.start_new_kernel


def start_new_kernel(*arguments: Any, **settings: Any) -> Any:
    """Starts a kernel that does not know that it is tested: knowing it, ipykernel would not capture what C code prints."""
    known = os.environ.pop("PYTEST_CURRENT_TEST", None)
    try:
        return _start_new_kernel(*arguments, **settings)
    finally:
        if known is not None:
            os.environ["PYTEST_CURRENT_TEST"] = known


def pytest_configure(config: pytest.Config) -> None:
    """Puts the kernel start above in nbval's place."""
    nbval.kernel.start_new_kernel = start_new_kernel
