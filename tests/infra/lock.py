"""`./run python -m tests.infra.lock` writes the locks anew from `pyproject.toml`, without the addresses of package indexes."""

import os
import subprocess
import sys
from typing import Annotated

import typer

from kcontrol.install.bootstrap import ROOT, pip_settings

COMPILE = ["uv", "pip", "compile", "pyproject.toml", "--quiet", "--generate-hashes", "--no-header", "--no-annotate"]
EVERYTHING = "requirements.lock"


def compile_lock(output: str, extras: list[str], options: list[str]) -> None:
    """Writes one lock in the project's folder."""
    named = [part for extra in extras for part in ("--extra", extra)]
    env = dict(os.environ)
    command = [sys.executable, "-m", *COMPILE, *named, *options, "--output-file", output]
    subprocess.run(command, cwd=ROOT, env=env | pip_settings(env), check=True)


def main(
    upgrade: Annotated[bool, typer.Option(help="Take the newest versions that are allowed.")] = False,
    packages: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Upgrade these alone.")] = None,
) -> None:
    """Write requirements.lock, and from it requirements-lab.lock, requirements-light.lock and binder/requirements.txt."""
    newest = [f"--upgrade-package={name}" for name in packages] if packages else ["--upgrade"] if upgrade else []
    universal = ["--universal", "--python-version", "3.11"]
    compile_lock(EVERYTHING, ["spark", "test", "build", "setup"], universal + newest)
    pinned = ["--constraint", EVERYTHING, "--upgrade"]
    compile_lock("requirements-lab.lock", ["spark"], universal + pinned)
    compile_lock("requirements-light.lock", [], universal + pinned)
    # Binder has one Python on Linux, so its list needs no markers and can be read by any pip.
    binder = ["--python-version", "3.12", "--python-platform", "linux"]
    compile_lock("binder/requirements.txt", ["spark", "build"], binder + pinned)


if __name__ == "__main__":
    typer.run(main)
