"""The command line of kcontrol: parses the arguments and calls the functions that do the work."""

import errno
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand
from typer.exceptions import TyperException

from kcontrol import __version__
from kcontrol.core.errors import UserError


class OneSentence(TyperCommand):
    """A command that raises UserError for wrong arguments; `main` then prints one sentence and returns 1."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments into `ctx`. Raises UserError for missing, unknown and illegal arguments."""
        try:
            return super().parse_args(ctx, args)
        except TyperException as problem:
            # The name of an option with an illegal value is in the longer text only.
            words = problem.format_message() if isinstance(problem, typer.BadParameter) else str(problem)
            remedy = f"run {ctx.command_path} --help for its arguments, its options and their values"
            raise UserError(f"{' '.join(words.split()).rstrip('.')}: {remedy}.") from None


app = typer.Typer(
    help="Open, pause, rewind, branch and break Kafka's control plane.",
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
)  # fmt: skip
zk = typer.Typer(help="A real ZooKeeper: start one, read one.", no_args_is_help=True)
app.add_typer(zk, name="zk")
tasks = typer.Typer(help="Exercises on the shell: start, check, hint, reset.", no_args_is_help=True)
app.add_typer(tasks, name="exercises")
pipeline = typer.Typer(help="Runs, broker logs and segments as tables in Parquet files, made by Spark.", no_args_is_help=True)
app.add_typer(pipeline, name="pipeline")

Folder = Annotated[Path | None, typer.Option("--dir", help="Your own folder.", show_default="work, or ~/kcontrol-work")]
Server = Annotated[str, typer.Option(
    "--zookeeper", envvar="KCONTROL_ZOOKEEPER", metavar="HOST:PORT[/CHROOT]", help="The ZooKeeper to read.", show_default=False,
)]  # fmt: skip
Topic = Annotated[str | None, typer.Option("--topic", metavar="T", help="Of rows about topics, keep those of this topic.")]
Master = Annotated[
    str | None, typer.Option("--master", metavar="spark://HOST:PORT", help="A Spark cluster; without it, Spark on this machine.")
]
Redact = Annotated[
    str | None, typer.Option("--redact", metavar="KINDS", help="Replace names in all tables: a list of topics, hosts, clients.")
]
LOG_PATHS = "Broker logs, or folders of logs: name the folder of each cluster as a PATH of its own."
Exercise = Annotated[str, typer.Argument(help="Its id, as `kcontrol exercises list` shows it.", show_default=False)]


@app.callback(invoke_without_command=True)
def options(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Print what an option without a command asks for."""
    if version:
        typer.echo(f"kcontrol {__version__}")
        raise typer.Exit


def _own(folder: Path | None) -> Path:
    from kcontrol.install import workspace

    return (folder or workspace.WORK).expanduser().resolve()


@app.command(epilog="./run lab --light leaves out Java and Spark, which the simulated world does not need.")
def lab(
    folder: Folder = None,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="The port; without it, a free port.")] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser, or only print the address.")] = True,
) -> None:
    """Copy new notebooks into your folder, update those that you have not changed, and open JupyterLab there until Ctrl-C."""
    from kcontrol.install import jupyter_server

    jupyter_server.serve(_own(folder), port, browser=browser)


@app.command()
def reset(chapter: Annotated[str, typer.Argument(help="Its number, such as 0 or A1.")], folder: Folder = None) -> None:
    """Restore one notebook in your folder; your version stays beside it under a new name."""
    from kcontrol.install import workspace

    path, kept = workspace.restore(_own(folder), workspace.chapter_file(chapter))
    typer.echo(f"{path} is as it was shipped." + (f" Yours is now {kept.name}." if kept else ""))


@app.command()
def doctor() -> None:
    """Check the installation: print what was found of Python, Java, Spark and other parts, and a remedy for each missing part."""
    from kcontrol.install.doctor import report

    if not report():
        raise typer.Exit(1)


@app.command(name="open")
def open_run(
    file: Annotated[Path, typer.Argument(help="A journal, a recording, or a folder of broker logs.", show_default=False)],
    html: Annotated[
        Path | None, typer.Option("--html", metavar="PAGE", help="Write the viewer as a page that needs no network.")
    ] = None,
    beside: Annotated[Path | None, typer.Option("--beside", metavar="FILE", help="Another run, shown on the page too.")] = None,
    log: Annotated[bool, typer.Option("--log", help="Print the lines that Kafka writes to its log files.")] = False,
) -> None:
    """Print the actions of a run, such as a kill, and the cluster's state at the end of the run.

    Instead of these, --log prints the lines that Kafka would log, and --html writes the run as a page.
    """
    from kcontrol.lab import opened_logs, text_report

    found = opened_logs.open_run(file)
    if beside is not None and html is None:
        raise UserError("--beside shows another run on a page: name the page with --html PAGE.")
    if html is not None:
        typer.echo(text_report.page(found, html, None if beside is None else opened_logs.open_run(beside)))
    else:
        typer.echo(text_report.in_kafkas_words(found) if log else text_report.report(found))


@app.command()
def metrics(file: Annotated[Path, typer.Argument(help="A journal, such as a file in the folder `runs`.")]) -> None:
    """Print Kafka's own metrics, such as OfflinePartitionsCount, at the end of a run, as text that Prometheus reads."""
    from kcontrol.lab.run import open_journal

    typer.echo(open_journal(file).tables.prometheus(), nl=False)


@zk.command()
def start(port: Annotated[int | None, typer.Option(min=1, max=65535, help="The port; without it, a free port.")] = None) -> None:
    """Run a real ZooKeeper on this machine until Ctrl-C; then its data is deleted."""
    from kcontrol.zookeeper.server.embedded import EmbeddedZooKeeper

    with EmbeddedZooKeeper(port) as server:
        typer.echo(f"ZooKeeper serves at {server.hosts}; Ctrl-C ends it.")
        typer.echo(f"Look into it with: kcontrol zk get -s --zookeeper {server.hosts} /zookeeper")
        try:
            server.wait()
        except KeyboardInterrupt:
            typer.echo("ZooKeeper has ended.")
        else:
            raise UserError("The ZooKeeper server has stopped: start it again.")


@zk.command()
def get(
    path: Annotated[str, typer.Argument(help="The znode's path, such as /controller.")],
    stat: Annotated[bool, typer.Option("-s", help="Print the eleven lines of its Stat too.")] = False,
    zookeeper: Server = "",
) -> None:
    """Print a znode in the format of ZooKeeper's own shell."""
    from kcontrol.views.zkcli import format_data, format_stat
    from kcontrol.zookeeper.kazoo.read import read_znode

    _require_address(zookeeper)
    znode = read_znode(zookeeper, path)
    typer.echo(format_stat(znode.data, znode.stat) if stat else format_data(znode.data))


@zk.command()
def show(
    observe: Annotated[bool, typer.Option("--observe", help="Read any cluster, not only a lab's: nothing is written.")] = False,
    zookeeper: Server = "",
) -> None:
    """Print the znodes of a cluster that a lab of kcontrol started, or with --observe of any cluster; write nothing to it.

    Without --observe any other cluster is refused.
    """
    from kcontrol.lab import observed_cluster

    _require_address(zookeeper)
    for line in observed_cluster.report(zookeeper, any_cluster=observe):
        typer.echo(line)


def _require_address(zookeeper: str) -> None:
    if not zookeeper:
        raise UserError("The address of a ZooKeeper is missing: add --zookeeper host:port, or set KCONTROL_ZOOKEEPER.")


@pipeline.command("runs", cls=OneSentence)
def pipeline_runs(
    paths: Annotated[list[Path], typer.Argument(help="Journals, or folders of journals.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="A new folder, or the folder of an earlier call.", show_default=False)],
    since: Annotated[str | None, typer.Option("--from", metavar="T", help="Read runs that began at this time or later.")] = None,
    until: Annotated[str | None, typer.Option("--to", metavar="T", help="Read runs that began before this time.")] = None,
    topic: Topic = None,
    master: Master = None,
    redact: Redact = None,
) -> None:
    """Write journals, and tables computed from them, such as `elections`, as Parquet, partitioned by the day of the run.

    The exit status is 1 if a file is no journal, or has damaged lines, which the tables leave out.
    """
    from kcontrol.pipeline import pipeline, pipeline_report
    from kcontrol.pipeline.redaction.stable_names import redaction_of

    times = pipeline_report.times_of(since, until)
    if not pipeline_report.runs(paths, out, typer.echo, pipeline.Chosen(*times, topic), master, redaction_of(redact)):
        raise typer.Exit(1)


@app.command("sweep", cls=OneSentence)
def play_sweep(
    scenario: Annotated[
        str, typer.Argument(help="rolling restart, random deaths, or consumers come and go.", show_default=False)
    ],
    replication: Annotated[str, typer.Option(metavar="N,N", help="Replication factors.")] = "3",
    unclean: Annotated[str, typer.Option(metavar="true,false", help="Values of unclean.leader.election.enable.")] = "false",
    session: Annotated[str, typer.Option(metavar="MS,MS", help="Session timeouts of brokers and consumers.")] = "18000",
    runs: Annotated[int, typer.Option(help="The number of runs in each combination of the three settings.")] = 100,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal tables.")] = 1,
    release: Annotated[str, typer.Option(help="The release of Kafka.")] = "2.8",
    assignor: Annotated[str, typer.Option(help="The assignor: range, roundrobin, sticky or cooperative-sticky.")] = "range",
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="A folder for the tables in Parquet files.")] = None,
    master: Annotated[
        str | None, typer.Option(metavar="spark://HOST:PORT", help="Play the runs on Spark; local[2] is Spark on this machine.")
    ] = None,
) -> None:
    """Play random runs of a scenario, and print how often partitions are offline and records lost, with 95 % intervals.

    The exit status is 1 if a run has failed.
    """
    from kcontrol.lab.sweeps import sweep_report

    asked = sweep_report.Asked(scenario, replication, unclean, session, runs, seed, release, assignor)
    if not sweep_report.run(asked, out, master, typer.echo):
        raise typer.Exit(1)


@pipeline.command("logs", cls=OneSentence)
def pipeline_logs(
    paths: Annotated[list[Path], typer.Argument(help=LOG_PATHS, show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="A new folder, or the folder of an earlier call.", show_default=False)],
    since: Annotated[str | None, typer.Option("--from", metavar="T", help="Keep records with this time or a later one.")] = None,
    until: Annotated[str | None, typer.Option("--to", metavar="T", help="Keep records with a time before this one.")] = None,
    topic: Topic = None,
    master: Master = None,
    redact: Redact = None,
    follow: Annotated[bool, typer.Option("--follow", help="Read appended lines and new files too, until Ctrl-C.")] = False,
    available_now: Annotated[
        bool, typer.Option("--available-now", help="With --follow: end as soon as all lines of now are read.")
    ] = False,
) -> None:
    """Write text logs of brokers (Kafka 0.8 to 3.9) as Parquet tables: log records, other lines, tables such as `leaderships`.

    A log record is a line with a time and its continuation lines. The exit status is 1 if a file is no readable log.
    """
    from kcontrol.pipeline import pipeline, pipeline_report
    from kcontrol.pipeline.redaction.stable_names import redaction_of

    chosen = pipeline.Chosen(*pipeline_report.times_of(since, until), topic)
    if available_now and not follow:
        raise UserError("--available-now belongs to --follow: write both.")
    replaced = redaction_of(redact)
    if follow:
        is_whole = pipeline_report.follow_logs(paths, out, typer.echo, chosen, master, replaced, once=available_now)
    else:
        is_whole = pipeline_report.logs(paths, out, typer.echo, chosen, master, replaced)
    if not is_whole:
        raise typer.Exit(1)


@pipeline.command("offsets", cls=OneSentence)
def pipeline_offsets(
    paths: Annotated[list[Path], typer.Argument(help="Segments of __consumer_offsets, or folders of them.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="A new folder, or the folder of an earlier call.", show_default=False)],
    since: Annotated[str | None, typer.Option("--from", metavar="T", help="Write records of this time (UTC) or later.")] = None,
    until: Annotated[str | None, typer.Option("--to", metavar="T", help="Write records from before this time (UTC).")] = None,
    topic: Annotated[str | None, typer.Option(metavar="T", help="Of rows about partitions, write those of this topic.")] = None,
    redact: Redact = None,
) -> None:
    """Write segments of __consumer_offsets as Parquet tables: commits, group_metadata, tombstones and rejected.

    The table rejected has records and bytes that cannot be read. The exit status is 1 if a file cannot be read or has no record.
    """
    from kcontrol.pipeline import pipeline, pipeline_report
    from kcontrol.pipeline.redaction.stable_names import redaction_of

    times = pipeline_report.times_of(since, until)
    if not pipeline_report.offsets(paths, out, typer.echo, pipeline.Chosen(*times, topic), redaction_of(redact)):
        raise typer.Exit(1)


@pipeline.command("report", cls=OneSentence)
def pipeline_report_page(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder of tables of runs or logs.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", metavar="PAGE", help="The page, such as report.html.", show_default=False)],
) -> None:
    """Write a page about tables of runs or logs: timeline, leader moves, tenures of controllers, rebalances.

    Print a summary too. Spark is not started.
    """
    from rich.console import Console

    from kcontrol.pipeline import pipeline_report

    pipeline_report.report(folder, out, Console())


@tasks.command("list")
def list_exercises(
    chapter: Annotated[str | None, typer.Option(help="List one chapter only, such as 0 or A1.")] = None, folder: Folder = None
) -> None:
    """List the exercises: id, chapter, kind of task (a verb such as Read or Diagnose), minutes, your result, and title."""
    from kcontrol.lab.exercises.exercises import registry, standing

    chapters = sorted({str(entry["chapter"]) for entry in registry().values()}, key=lambda name: (len(name), name))
    wanted = chapter and (chapter.lstrip("0") or "0")
    if chapter is not None and wanted not in chapters:
        raise UserError(f"Chapter {chapter!r} has no exercises; the chapters with exercises are {', '.join(chapters)}.")
    for id, entry in registry().items():
        if chapter is None or str(entry["chapter"]) == wanted:
            about = f"{entry['chapter']!s:>2}  {entry['verb']:9}{entry['minutes']:3} min  {standing(_own(folder), id):15}"
            typer.echo(f"{id:30}{about}{entry['title']}")


@tasks.command("start")
def start_exercise(id: Exercise, folder: Folder = None) -> None:
    """Copy the stub of an exercise into your folder, unless your file is there already, and print the task."""
    from kcontrol.lab.exercises.exercises import exercise, start

    path = start(_own(folder), id)
    typer.echo(f"{exercise(id)['title']} {exercise(id)['text']}")
    typer.echo(f"Write into {path}, then: kcontrol exercises check {id}")


@tasks.command("check")
def check_exercise(id: Exercise, folder: Folder = None) -> None:
    """Check the answer to an exercise in your file; the exit status is 0 if the answer is right."""
    from kcontrol.lab.exercises.exercises import check_file

    verdict = check_file(_own(folder), id)
    encoding = sys.stdout.encoding or "utf-8"
    typer.echo(repr(verdict).encode(encoding, "replace").decode(encoding))
    if not verdict.passed:
        raise typer.Exit(1)


@tasks.command("hint")
def hint_exercise(id: Exercise, folder: Folder = None) -> None:
    """Print the next hint to an exercise; after the last one, a sentence that there is no other hint."""
    from kcontrol.lab.exercises.exercises import hint

    typer.echo(hint(id, _own(folder)))


@tasks.command("reset")
def reset_exercise(id: Exercise, folder: Folder = None) -> None:
    """Restore the stub of an exercise in your folder; your version stays beside it under a new name."""
    from kcontrol.lab.exercises.exercises import reset as bring_back

    path, kept = bring_back(_own(folder), id)
    typer.echo(f"{path} is as it was shipped." + (f" Yours is now {kept.name}." if kept else ""))


def main() -> int:
    """Run the command line.

    After a UserError, or if the output cannot be written, print one sentence on stderr and return 1. Otherwise typer ends the
    process with SystemExit.
    """
    try:
        app(prog_name="kcontrol")
    except UserError as problem:
        print(f"kcontrol: {problem}", file=sys.stderr)
        return 1
    except OSError as problem:
        # Only an error of the output is reported here; typer ends the process in every other case.
        if problem.filename is not None or problem.errno not in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # discards the output that is still buffered
        print(f"kcontrol: The output cannot be written ({problem.strerror}): write it to another place.", file=sys.stderr)
        return 1
    return 0
