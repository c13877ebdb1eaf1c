"""What stands in for a part that this machine does not have."""

from __future__ import annotations

from typing import Any


class Missing:
    """Answers whatever it is asked with itself, and shows one sentence: cells that want the part say so and do nothing."""

    def __init__(self, sentence: str) -> None:
        self._sentence = sentence

    def __getattr__(self, name: str) -> Missing:
        if name.startswith("_"):
            raise AttributeError(name)  # IPython and copy ask for such names to learn what an object can do
        return self

    def __call__(self, *_: Any, **__: Any) -> Missing:
        return self

    def __getitem__(self, _: Any) -> Missing:
        return self

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return self._sentence
