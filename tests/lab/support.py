"""What several tests of the lab ask for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kcontrol.core.errors import UserError

FORBIDDEN = ("Traceback", 'File "')


def is_one_sentence(text: str) -> bool:
    """Whether a message is one line that ends like a sentence, and shows nothing of how the program is made."""
    return text.endswith((".", "?")) and "\n" not in text and not any(word in text for word in FORBIDDEN)


def refusal(problem: pytest.ExceptionInfo[UserError]) -> str:
    said = str(problem.value)
    assert is_one_sentence(said), said
    return said


def script(code: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """A script of a learner's, run in a process of its own."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, env=os.environ | env, capture_output=True, text=True, timeout=120, check=False)


def says(done: subprocess.CompletedProcess[str]) -> str:
    """The one sentence that a script ended with, and nothing else, and a status that is not zero."""
    assert done.returncode == 1, done
    line = done.stderr.removesuffix("\n")
    assert line.startswith("kcontrol: ") and is_one_sentence(line), done.stderr
    return line.removeprefix("kcontrol: ")
