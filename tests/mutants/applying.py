"""Puts a mutation into the functions of this process, or into a module when it is imported, and nowhere on disk."""

from __future__ import annotations

import gc
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from tests.mutants.mutations import Mutation, mutated


def change_functions(root: Path, mutation: Mutation) -> None:
    """Give every function made from the mutated text the mutated code; raises LookupError where there is none."""
    path = str(root / mutation.file)
    codes = {
        code.co_firstlineno: code
        for code in _codes(compile(mutated(root, mutation), path, "exec"))
        if code.co_qualname == mutation.function
    }
    functions = [
        found
        for found in gc.get_objects()
        if isinstance(found, FunctionType)
        and found.__code__.co_filename == path
        and found.__code__.co_qualname == mutation.function
    ]
    for function in functions:
        function.__code__ = codes[function.__code__.co_firstlineno]
    if not functions:
        raise LookupError(f"{mutation.function} of {mutation.file} is no function of this process")


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


class Mutator(importlib.machinery.SourceFileLoader):
    """Loads a module as if its file held the mutation."""

    def __init__(self, name: str, root: Path, mutation: Mutation) -> None:
        super().__init__(name, str(root / mutation.file))
        self.root, self.mutation = root, mutation

    def get_code(self, fullname: str) -> CodeType:
        return compile(mutated(self.root, self.mutation), self.path, "exec")


class Finder(importlib.abc.MetaPathFinder):
    """Finds one module ahead of all other finders."""

    def __init__(self, loader: Mutator) -> None:
        self.loader = loader

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.loader.name:
            return None
        return importlib.util.spec_from_file_location(fullname, self.loader.path, loader=self.loader)


def change_import(root: Path, mutation: Mutation) -> None:
    """Let the next import of the module find the mutation. Raises LookupError where the module has been imported already."""
    name = ".".join(Path(mutation.file).with_suffix("").parts)
    if name in sys.modules:
        raise LookupError(f"{name} has been imported already")
    sys.meta_path.insert(0, Finder(Mutator(name, root, mutation)))
