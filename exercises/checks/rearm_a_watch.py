"""Check that a function follows a znode: it reports every value if notifications arrive between writes, and always the last."""

from kcontrol.lab.exercises.check_kinds import A_FUNCTION
from kcontrol.lab.exercises.checks import Case, CheckedAnswer, CheckKind, ask, short
from kcontrol.lab.zookeeper_playground import Playground

PATH = "/followed"


class Meanwhile:
    """A client with a second client that writes: after each read of the first client, the second writes the next value."""

    def __init__(self, client, write):
        self._client, self._write = client, write

    def get(self, path, watch=None):
        found = self._client.get(path, watch=watch)
        self._write()
        return found

    def exists(self, path, watch=None):
        found = self._client.exists(path, watch=watch)
        self._write()
        return found


def prepare(entry):
    """Return a function that checks an answer in seven runs; `entry`, the exercise's table in exercises.toml, is not used.

    In three runs each notification comes before the next write, in four the writes come right after the reads.
    """
    return lambda follow: CheckedAnswer(
        [*(_calmly(follow, n) for n in (0, 1, 3)), *(_meanwhile(follow, n) for n in (1, 2, 3, 4))]
    )


def _opened():
    ground = Playground()
    writer, reader = ground.kazoo("writer"), ground.kazoo("reader")
    writer.create(PATH, b"0")
    return ground, writer, reader


def _calmly(follow, writes):
    ground, writer, reader = _opened()
    reported = []
    ask(follow, reader, PATH, reported.append)
    for number in range(1, writes + 1):
        writer.set(PATH, str(number).encode())
        ground.settle()
    right = [str(number).encode() for number in range(writes + 1)]
    text = f"{writes} writes, each after the last notification: report gets {short(reported)}; right is {short(right)}."
    return Case(text, _words(reported), _words(right))


def _meanwhile(follow, writes):
    ground, writer, reader = _opened()
    reported, left = [], list(range(1, writes + 1))

    def write():
        if left:
            writer.set(PATH, str(left.pop(0)).encode())

    ask(follow, Meanwhile(reader, write), PATH, reported.append)
    for _ in range(writes + 1):
        ground.settle()
        write()
    ground.settle()
    last = str(writes).encode()
    text = f"{writes} writes right after reads: report gets {short(reported[-1:])} last; right is {short(last)}."
    return Case(text, _words(reported[-1:]), _words([last]))


def _words(values):
    return [value.decode() if isinstance(value, bytes) else f"a value of type {type(value).__name__}" for value in values] or None


KIND = CheckKind(prepare, A_FUNCTION, callable)
