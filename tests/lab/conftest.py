"""Every test plays in a folder of its own, and closes what it has opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kcontrol import Lab


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that a learner's notebook would lie in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def opened(folder: Path) -> Iterator[Callable[..., Lab]]:
    """Opens labs, and closes them at the end."""
    labs: list[Lab] = []

    def open_lab(*arguments: Any, **settings: Any) -> Lab:
        labs.append(Lab(*arguments, **settings))
        return labs[-1]

    yield open_lab
    for lab in labs:
        lab.close()


@pytest.fixture
def lab(opened: Callable[..., Lab]) -> Lab:
    """Three brokers at rest, with the two partitions of chapter 0."""
    return opened(topics={"t": [[2, 3], [1, 2, 3]]})
