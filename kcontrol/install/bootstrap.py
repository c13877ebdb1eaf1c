"""Makes the project's environment `.venv` and starts a command in it; `./run` calls this module with the Python on PATH.

It uses the standard library alone and imports nothing of the package, because nothing is installed yet.
"""

import ast
import fcntl
import hashlib
import json
import os
import re
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
OWN_UV = ROOT / ".uv"
# During an installation this file has only the level ("light", "lab" or "full"), so an interrupted installation is made again.
# Afterwards it also has the project's folder and a digest of the lock files, so a copied folder is recognized.
STAMP = VENV / "kcontrol.json"
LOCKS = {"light": ROOT / "requirements-light.lock", "lab": ROOT / "requirements-lab.lock", "full": ROOT / "requirements.lock"}
"""The locks by level; each includes the levels before it: the simulated world, Java and Spark, the tools of the tests."""
GIGABYTES = {"light": "0.1", "lab": "0.6", "full": "0.7"}
UV_NAMES = {
    "index-url": "UV_DEFAULT_INDEX", "extra-index-url": "UV_INDEX", "find-links": "UV_FIND_LINKS",
    "cert": "SSL_CERT_FILE", "trusted-host": "UV_INSECURE_HOST", "proxy": "ALL_PROXY",
}  # fmt: skip
USAGE = """usage: ./run [--light] COMMAND

  lab [--light] [--no-browser] [--port N] [--dir DIR]   open the workbook in JupyterLab
  test [--all] [--require PARTS]                        add the tools of the tests, and run them
  doctor                                                report the installed and the missing parts
  kcontrol ...                                          the command line in the environment
  python ...                                            Python in the environment

--light leaves out Java and Spark, which the simulated world does not need."""


class SetupFailed(Exception):
    """The error for an environment that cannot be made; its text is one sentence with the cause and the remedy."""


def stamp_for(level: str) -> dict[str, str]:
    """Return the content of `.venv/kcontrol.json`, the stamp file of a complete environment of `level` (light, lab or full).

    The keys are `root` (the project's folder), `level`, and `inputs` (a digest of locks and pyproject.toml).
    """
    digest = hashlib.sha256()
    for path in (*LOCKS.values(), ROOT / "pyproject.toml"):
        digest.update(path.read_bytes())
    return {"root": str(ROOT), "level": level, "inputs": digest.hexdigest()}


def read_stamp() -> dict[str, str]:
    """Return the content of `.venv/kcontrol.json`, which describes the last installation: {"level": "lab", ...}.

    Return {} if this file or Python in `.venv` is missing.
    """
    if not os.access(PYTHON, os.X_OK):
        return {}
    try:
        found = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def is_ready(level: str) -> bool:
    """Return whether the environment is complete for `level` (light, lab or full) or a higher level."""
    found = read_stamp()
    return found == stamp_for(found.get("level", "")) and highest(level, found.get("level")) == found["level"]


def highest(level: str, other: str | None) -> str:
    """Return the higher of two levels of packages; the lowest level is "light", the highest is "full".

    If `other` is not a level, return `level`.
    """
    levels = list(LOCKS)
    return max(level, other, key=levels.index) if other in levels else level


def say(text: str) -> None:
    """Print one line of progress to stderr, apart from a command's output."""
    print(f"kcontrol: {text}", file=sys.stderr, flush=True)


def run(*command: str | Path, env: dict[str, str], text: str = "", quiet: bool = False) -> bool:
    """Run a command with `text` as its input; return whether it succeeded. Its output goes to stderr or, if `quiet`, nowhere."""
    to = subprocess.DEVNULL if quiet else 2
    # The command inherits the lock file of `alone`: the lock lasts until the command has ended, even if this process ends
    # before.
    done = subprocess.run(command, env=env, input=text.encode(), stdout=to, stderr=to, close_fds=False, check=False)
    return done.returncode == 0


def pinned_uv() -> str:
    """Return the requirement of uv in requirements.lock, with all hashes, in pip's format."""
    found = re.search(r"^uv==(.*\\\n)+.*\n", LOCKS["full"].read_text(), re.MULTILINE)
    assert found is not None
    return found[0]


def find_uv(env: dict[str, str]) -> Path:
    """Return the uv of requirements.lock, which pip has installed into `.uv`. Raises SetupFailed if venv or pip fails."""
    requirement, installed = pinned_uv(), OWN_UV / "installed.txt"
    if not installed.exists() or installed.read_text() != requirement:
        if not run(sys.executable, "-m", "venv", "--clear", OWN_UV, env=env):
            raise SetupFailed(
                f"{sys.executable} cannot make environments: install its venv module (Debian's and Ubuntu's python3-venv)."
            )
        pip = (OWN_UV / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
        hashed = ("--only-binary=:all:", "--require-hashes", "--requirement", "/dev/stdin")
        if not run(*pip, *hashed, env=env, text=requirement):
            raise SetupFailed(
                "pip could not install uv: see its message above, check the network or pip's settings, then run this again."
            )
        installed.write_text(requirement)
    return OWN_UV / "bin" / "uv"


def pip_settings(env: dict[str, str]) -> dict[str, str]:
    """Return pip's settings (index, certificate, proxy) as environment variables for uv, without the variables in `env`.

    So a machine on which pip works behind a mirror or with a company's certificate needs no second configuration.
    """
    python = OWN_UV / "bin" / "python"
    command = [python if python.exists() else sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, env=env, capture_output=True, text=True, check=False).stdout
    found: dict[str, str] = {}
    for line in listed.splitlines():
        key, _, value = line.partition("=")
        if name := UV_NAMES.get(key.rpartition(".")[2]):
            found[name] = ("," if name == "UV_FIND_LINKS" else " ").join(str(ast.literal_eval(value)).split())
    certificates = ssl.get_default_verify_paths()
    # Without CA certificates in OpenSSL's default places uv uses those that it contains.
    if certificates.cafile or (certificates.capath and any(Path(certificates.capath).iterdir())):
        found["UV_SYSTEM_CERTS"] = "1"
    return {name: value for name, value in found.items() if name not in env}


def install(uv: Path, level: str, env: dict[str, str]) -> None:
    """Install the packages in the lock file of `level`, and after them kcontrol; check the packages' hashes.

    The packages come from uv's cache alone if that is complete. On a terminal uv shows its progress.

    Raises SetupFailed: a package is neither in uv's cache nor in the package index.
    """
    into = (uv, "pip", "install", "--python", PYTHON, "--build-constraints", LOCKS["full"], "--no-deps")
    shown = () if sys.stderr.isatty() else ("--quiet",)
    for what in (("--require-hashes", "--requirement", LOCKS[level]), ("--editable", ROOT)):
        if not (run(*into, *what, "--offline", env=env, quiet=True) or run(*into, *what, *shown, env=env)):
            raise SetupFailed(
                "The packages could not be installed: see the message above, check the network, then run this again."
            )


FIRST_IMPORTS = """
import compileall, ipykernel.kernelapp, jupyterlab.labapp, pandas, kcontrol.lab.lab, kcontrol.views.viewer
compileall.compile_dir(kcontrol.__path__[0], quiet=2)
"""
"""Python that writes the bytecode of kcontrol, and of what the server, a kernel and the first cells import."""


def compile_first_imports(env: dict[str, str]) -> None:
    """Compile what the first notebook imports, unless PYTHONDONTWRITEBYTECODE forbids bytecode.

    uv does not compile. All packages would take 20 s of processor; these take 7, which the first page and cell then save.
    """
    if not env.get("PYTHONDONTWRITEBYTECODE"):
        run(PYTHON, "-c", FIRST_IMPORTS, env=env, quiet=True)


@contextmanager
def alone() -> Iterator[None]:
    """Lock the file `.venv.lock` for the `with` block, and wait if another process has the lock.

    Commands that `run` starts in the block keep the lock until they end, even if this process ends before.
    """
    with (ROOT / ".venv.lock").open("w") as lock:
        os.set_inheritable(lock.fileno(), True)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another start is making the environment; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def make(level: str) -> None:
    """Install in `.venv` the packages of `level` (light, lab or full); other processes that call `make` wait.

    Raises SetupFailed: the environment cannot be made.
    """
    with alone():
        if is_ready(level):
            return
        found, began = read_stamp(), time.monotonic()
        # A higher level that `.venv` has already is kept.
        level = highest(level, found.get("level"))
        is_new = found.get("root") != str(ROOT)
        if is_new:
            say(f"making the environment in {VENV} (once; {GIGABYTES[level]} GB to fetch where nothing is cached)")
        else:
            say(f"completing the environment in {VENV} (once; only missing packages are fetched)")
        env = {key: value for key, value in os.environ.items() if key not in {"PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV"}}
        uv = find_uv(env)
        env |= pip_settings(env)
        python = ("--no-python-downloads", "--python", sys.executable)
        if is_new and not run(uv, "venv", "--quiet", "--clear", *python, VENV, env=env):
            raise SetupFailed(f"The environment could not be made in {VENV}: see the message above.")
        # Without a root: an interrupted installation is made again, for this level.
        STAMP.write_text(json.dumps({"level": level}))
        install(uv, level, env)
        compile_first_imports(env)
        STAMP.write_text(json.dumps(stamp_for(level)))
        say(f"the environment is ready, after {time.monotonic() - began:.0f} s")


def split(arguments: list[str]) -> tuple[str, str, list[str]]:
    """Return (command of `./run`, level of packages that the command needs, arguments of the command).

    The level is "light" (also for the option `--light`), "lab" or "full"; "any" means that every level is enough.

    Raises SetupFailed: the command is unknown, or `--light` is given for the command `test`.
    """
    light = arguments[:1] == ["--light"]
    command, *rest = arguments[1:] if light else arguments
    if command not in {"lab", "test", "doctor", "kcontrol", "python"}:
        raise SetupFailed(f"{command!r} is not a command of ./run: use lab, test, doctor, kcontrol or python.")
    if command == "lab" and "--light" in rest:
        light = True
        rest.remove("--light")
    if command == "test" and light:
        raise SetupFailed("The tests need everything: run ./run test without --light.")
    if light:
        return command, "light", rest
    # "any": the command runs with the packages of every level.
    return command, {"lab": "lab", "test": "full"}.get(command, "any"), rest


def exec_command(command: str, rest: list[str]) -> None:
    """Replace this process by the command of `./run`, such as "lab", with the arguments `rest`.

    The process id stays, so that signals reach the command.
    """
    env = {key: value for key, value in os.environ.items() if key != "PYTHONHOME"}
    env |= {"VIRTUAL_ENV": str(VENV), "PATH": f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    if command == "test":
        os.chdir(ROOT)
        arguments = ["-m", "tests", *rest]
    elif command == "python":
        arguments = rest
    else:
        arguments = ["-P", "-m", "kcontrol", *([] if command == "kcontrol" else [command]), *rest]
    os.execve(PYTHON, [str(PYTHON), *arguments], env)


def main(arguments: list[str]) -> int:
    """Make the environment ready for the command in `arguments`, then replace this process by the command.

    Return an exit status only if no command runs, for example after an error: 0 for `--help`, else not 0.
    """
    if arguments in ([], ["--light"]) or arguments[0] in {"-h", "--help", "help"}:
        print(USAGE)
        return 0 if arguments[:1] not in ([], ["--light"]) else 2
    try:
        command, level, rest = split(arguments)
        present = read_stamp().get("level")
        needed = level if level != "any" else present if present in LOCKS else "lab"
        if not is_ready(needed):
            make(needed)
    except SetupFailed as problem:
        say(str(problem))
        return 1
    except OSError as problem:
        say(f"The environment cannot be made in {ROOT} ({problem.strerror}): check the rights and the free space there.")
        return 1
    except KeyboardInterrupt:
        # 128 + SIGINT, as a shell reports Ctrl-C.
        say("interrupted; run the command again to continue.")
        return 130
    exec_command(command, rest)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
