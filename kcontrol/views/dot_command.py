"""A replacement of Graphviz's `dot`, so that the graphviz package works on a machine without Graphviz.

If another `dot` is on PATH, the replacement runs that `dot`.
"""

import argparse
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CALLED = "KCONTROL_DOT_CALLED"


def other_dot() -> str | None:
    """Return the first `dot` on PATH that is not this script, None if there is none."""
    # Two copies of this script on PATH must not call each other without end.
    if os.environ.get(CALLED):
        return None
    own = Path(sys.argv[0]).resolve()
    for folder in os.get_exec_path():
        found = shutil.which("dot", path=folder)
        if found and Path(found).resolve() != own:
            return found
    return None


@contextmanager
def silenced_stderr() -> Iterator[None]:
    """Discard the output to file descriptor 2 in the `with` block: Fontconfig in pygraphviz's wheel prints warnings there."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def graphviz_version() -> str:
    """Return the release of the Graphviz in the wheel of pygraphviz."""
    import pygraphviz

    return str(pygraphviz.__graphviz_version__)


def draw(source: str, engine: str, image_format: str, attributes: list[str]) -> bytes:
    """Return the picture of a graph in the DOT language, laid out by `engine` ("dot") in `image_format` ("svg").

    `attributes` are such as "Grankdir=LR". Raises ValueError for a source that is no graph.
    """
    import pygraphviz

    try:
        with silenced_stderr():
            graph = pygraphviz.AGraph(string=source)
            for setting in attributes:
                name, _, value = setting[1:].partition("=")
                # G is the graph, N are its nodes and E its edges.
                {"G": graph.graph_attr, "N": graph.node_attr, "E": graph.edge_attr}[setting[0]][name] = value or "true"
            picture = graph.draw(format=image_format, prog=engine)
    except TypeError as problem:  # for an unknown format, pygraphviz reads Graphviz's status code as a picture
        raise ValueError(f"Format: {image_format!r} not recognized.") from problem
    except (pygraphviz.DotError, ValueError, OSError) as problem:
        raise ValueError(str(problem).strip() or "the source is no graph") from problem
    return picture if isinstance(picture, bytes) else str(picture).encode()


def parse(arguments: list[str]) -> argparse.Namespace:
    """Raises ValueError for an option that this replacement of Graphviz's `dot` does not know."""
    parser = argparse.ArgumentParser("dot", add_help=False)
    parser.add_argument("-?", action="help")
    parser.add_argument("-K", metavar="engine", default="dot")
    parser.add_argument("-T", metavar="format", default="dot")
    parser.add_argument("-o", metavar="file")
    for letter in "GNE":
        kept = f"{letter}{{}}".format
        parser.add_argument(f"-{letter}", metavar="name=value", action="append", dest="attributes", default=[], type=kept)
    for letter in "OVq":
        parser.add_argument(f"-{letter}", action="store_true")
    parser.add_argument("files", nargs="*", default=["-"])
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        raise ValueError(f"dot: option {unknown[0]} unrecognized\n{parser.format_usage()}")
    return options


def write(picture: bytes, source_file: str, options: argparse.Namespace) -> None:
    """To the file of -o or -O (`source_file` with the format as suffix), else to stdout."""
    if options.O:
        Path(".".join([source_file, *reversed(options.T.split(":"))])).write_bytes(picture)
    elif options.o:
        Path(options.o).write_bytes(picture)
    else:
        sys.stdout.buffer.write(picture)


def main() -> int:
    """Run the command `dot` with the arguments of this process; return the exit status: 0 for success, 1 for an error."""
    # Another `dot` replaces this process.
    if other := other_dot():
        os.execve(other, ["dot", *sys.argv[1:]], os.environ | {CALLED: "1"})
    try:
        options = parse(sys.argv[1:])
        if options.V:
            print(f"dot - graphviz version {graphviz_version()} (in pygraphviz)", file=sys.stderr)
            return 0
        for name in options.files:
            source = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
            picture = draw(source, options.K, options.T.partition(":")[0], options.attributes)
            write(picture, "noname.gv" if name == "-" else name, options)
    except (OSError, ValueError) as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
