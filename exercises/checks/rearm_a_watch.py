"""Whether a znode is followed: every value where news is told in between, the last one however writes and reads interleave."""

from kcontrol.lab.checks import Case, Kind, Marked, ask, short
from kcontrol.lab.kinds import A_FUNCTION
from kcontrol.lab.playground import Playground

PATH = "/followed"


class Meanwhile:
    """A client between whose calls somebody else writes: after each read the next value, as long as there are any."""

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
    """Three runs in which each change is told before the next one, and four in which writes come between reads."""
    return lambda follow: Marked([*(_calmly(follow, n) for n in (0, 1, 3)), *(_meanwhile(follow, n) for n in (1, 2, 3, 4))])


def _opened():
    ground = Playground()
    writer, reader = ground.kazoo("writer"), ground.kazoo("reader")
    writer.create(PATH, b"0")
    return ground, writer, reader


def _calmly(follow, writes):
    ground, writer, reader = _opened()
    heard = []
    ask(follow, reader, PATH, heard.append)
    for number in range(1, writes + 1):
        writer.set(PATH, str(number).encode())
        ground.settle()
    right = [str(number).encode() for number in range(writes + 1)]
    text = f"0 is followed by {writes} writes, each told before the next: told hears {short(heard)}, right is {short(right)}."
    return Case(text, _words(heard), _words(right))


def _meanwhile(follow, writes):
    ground, writer, reader = _opened()
    heard, left = [], list(range(1, writes + 1))

    def write():
        if left:
            writer.set(PATH, str(left.pop(0)).encode())

    ask(follow, Meanwhile(reader, write), PATH, heard.append)
    for _ in range(writes + 1):
        ground.settle()
        write()
    ground.settle()
    last = str(writes).encode()
    text = f"Somebody writes {writes} times right after reads: told hears {short(heard[-1:])} last, right is {short(last)}."
    return Case(text, _words(heard[-1:]), _words([last]))


def _words(heard):
    return [value.decode() if isinstance(value, bytes) else f"something else, {type(value).__name__}" for value in heard] or None


KIND = Kind(prepare, A_FUNCTION, callable)
