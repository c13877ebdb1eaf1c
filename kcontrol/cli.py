"""The command line: parses and calls."""

import errno
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from kcontrol.errors import UserError

app = typer.Typer(
    help="Open, pause, rewind, branch and break Kafka's control plane.",
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
)  # fmt: skip
zk = typer.Typer(help="A real ZooKeeper: start one, read one.", no_args_is_help=True)
app.add_typer(zk, name="zk")
tasks = typer.Typer(help="Exercises on the shell: start, check, hint, reset.", no_args_is_help=True)
app.add_typer(tasks, name="exercises")

Folder = Annotated[
    Path | None, typer.Option("--dir", help="Your own folder; `work` in the project's folder where none is given.")
]
Server = Annotated[
    str,
    typer.Option(
        "--zookeeper",
        envvar="KCONTROL_ZOOKEEPER",
        metavar="HOST:PORT[/CHROOT]",
        help="Which ZooKeeper to read.",
        show_default=False,
    ),
]
Exercise = Annotated[str, typer.Argument(help="Its id, as `kcontrol exercises list` shows it.", show_default=False)]


def _own(folder: Path | None) -> Path:
    from kcontrol.lab import workspace

    return (folder or workspace.PROJECT / "work").expanduser().resolve()


@app.command()
def lab(
    folder: Folder = None,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="The port; a free one where none is given.")] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser, or only print the address.")] = True,
) -> None:
    """Open the workbook in JupyterLab."""
    from kcontrol.lab import server, workspace

    server.serve(folder or workspace.PROJECT / "work", port, browser=browser)


@app.command()
def reset(chapter: Annotated[str, typer.Argument(help="Its number, such as 0 or A1.")], folder: Folder = None) -> None:
    """Bring one notebook back as it was shipped, keeping yours beside it."""
    from kcontrol.lab import workspace

    path, kept = workspace.reset(_own(folder), chapter)
    typer.echo(f"{path} is as it was shipped." + (f" Yours is now {kept.name}." if kept else ""))


@app.command()
def doctor() -> None:
    """Say what is there, which Java was taken and why, and what to do about what is missing."""
    from rich.console import Console

    from kcontrol.lab.doctor import report

    if not report(Console()):
        raise typer.Exit(1)


@app.command(name="open")
def open_run(
    file: Annotated[Path, typer.Argument(help="A journal, or a recording of real brokers.", show_default=False)],
    html: Annotated[
        Path | None, typer.Option("--html", metavar="PAGE", help="Write the viewer as a page that needs no network.")
    ] = None,
    log: Annotated[bool, typer.Option("--log", help="Print what Kafka's own logs say of it, line by line.")] = False,
) -> None:
    """Look at a run that a file holds: what was done, and how the cluster stood at the end."""
    from kcontrol.lab import outline
    from kcontrol.lab.moment import open_journal

    found = open_journal(file)
    if html is not None:
        typer.echo(outline.page(found, html))
    else:
        typer.echo(outline.in_kafkas_words(found) if log else outline.told(found))


@app.command()
def metrics(file: Annotated[Path, typer.Argument(help="A journal, as every run leaves one in `runs`.")]) -> None:
    """Print Kafka's own metrics at the end of a run, as text that Prometheus reads."""
    from kcontrol.lab.moment import open_journal

    typer.echo(open_journal(file).prometheus(), nl=False)


@zk.command()
def start(
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="The port; a free one where none is given.")] = None,
) -> None:
    """Run a real ZooKeeper on this machine until Ctrl-C; its data goes with it."""
    from kcontrol.runtime.embedded import EmbeddedZooKeeper

    with EmbeddedZooKeeper(port) as server:
        typer.echo(f"ZooKeeper serves at {server.hosts}; Ctrl-C ends it.")
        typer.echo(f"Look into it with: kcontrol zk get -s --zookeeper {server.hosts} /zookeeper")
        try:
            server.wait()
        except KeyboardInterrupt:
            typer.echo("ZooKeeper has ended.")
        else:
            raise UserError("ZooKeeper has ended by itself: start it again.")


@zk.command()
def get(
    path: Annotated[str, typer.Argument(help="The znode's path, such as /controller.")],
    stat: Annotated[bool, typer.Option("-s", help="Print the eleven lines of its Stat too.")] = False,
    zookeeper: Server = "",
) -> None:
    """Print a znode as ZooKeeper's own shell does."""
    from kcontrol.runtime.zk_read import read_znode
    from kcontrol.views.zkcli import format_data, format_stat

    _require_address(zookeeper)
    znode = read_znode(zookeeper, path)
    typer.echo(format_stat(znode.data, znode.stat) if stat else format_data(znode.data))


@zk.command()
def show(
    observe: Annotated[bool, typer.Option("--observe", help="Look at anybody's cluster: nothing is written there.")] = False,
    zookeeper: Server = "",
) -> None:
    """Print what a cluster keeps in ZooKeeper: a lab's, or with --observe anybody's."""
    from kcontrol.lab import observing

    _require_address(zookeeper)
    for line in observing.report(zookeeper, anybodys=observe):
        typer.echo(line)


def _require_address(zookeeper: str) -> None:
    if not zookeeper:
        raise UserError("Say which ZooKeeper to read: --zookeeper host:port, or KCONTROL_ZOOKEEPER in the environment.")


@tasks.command("list")
def list_exercises(
    chapter: Annotated[str | None, typer.Option(help="Those of one chapter alone, such as 0 or A1.")] = None,
    folder: Folder = None,
) -> None:
    """List the exercises: id, chapter, verb, minutes, title, and how far you have come."""
    from kcontrol.lab.exercises import registry, standing

    chapters = sorted({str(entry["chapter"]) for entry in registry().values()}, key=lambda name: (len(name), name))
    wanted = chapter and (chapter.lstrip("0") or "0")
    if chapter is not None and wanted not in chapters:
        raise UserError(f"There are no exercises of a chapter {chapter!r}; there are some of {', '.join(chapters)}.")
    for id, entry in registry().items():
        if chapter is None or str(entry["chapter"]) == wanted:
            about = f"{entry['chapter']!s:>2}  {entry['verb']:9}{entry['minutes']:3} min  {standing(_own(folder), id):15}"
            typer.echo(f"{id:30}{about}{entry['title']}")


@tasks.command("start")
def start_exercise(id: Exercise, folder: Folder = None) -> None:
    """Bring the stub of an exercise into your folder, and say what is to be done."""
    from kcontrol.lab.exercises import exercise, start

    path = start(_own(folder), id)
    typer.echo(f"{exercise(id)['title']} {exercise(id)['text']}")
    typer.echo(f"Write into {path}, then: kcontrol exercises check {id}")


@tasks.command("check")
def check_exercise(id: Exercise, folder: Folder = None) -> None:
    """Judge what your file says; the exit status is 0 if it is solved."""
    from kcontrol.lab.exercises import check_file

    verdict = check_file(_own(folder), id)
    encoding = sys.stdout.encoding or "utf-8"
    typer.echo(repr(verdict).encode(encoding, "replace").decode(encoding))
    if not verdict.passed:
        raise typer.Exit(1)


@tasks.command("hint")
def hint_exercise(id: Exercise, folder: Folder = None) -> None:
    """Give the next hint."""
    from kcontrol.lab.exercises import hint

    typer.echo(hint(id, _own(folder)))


@tasks.command("reset")
def reset_exercise(id: Exercise, folder: Folder = None) -> None:
    """Bring one stub back as it was shipped, keeping yours beside it."""
    from kcontrol.lab.exercises import reset as bring_back

    path, kept = bring_back(_own(folder), id)
    typer.echo(f"{path} is as it was shipped." + (f" Yours is now {kept.name}." if kept else ""))


def main() -> int:
    """Runs the command line; a problem the user can act on is one sentence on stderr and status 1."""
    try:
        app(prog_name="kcontrol")
    except UserError as problem:
        print(f"kcontrol: {problem}", file=sys.stderr)
        return 1
    except OSError as problem:
        if problem.filename is not None or problem.errno not in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still buffered goes nowhere
        print(f"kcontrol: The answer cannot be written ({problem.strerror}): write it to another place.", file=sys.stderr)
        return 1
    return 0
