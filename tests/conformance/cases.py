"""Case files: reading them, with one sentence for whatever is wrong with the file itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

Case = dict[str, Any]


class BadFile(Exception):
    """The file cannot be played at all."""


class UniqueKeys(yaml.SafeLoader):
    """YAML in which a mapping that has a key twice is an error."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """Refuse what YAML would silently let win."""
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} is there twice", node.start_mark)
        return super().construct_mapping(node, deep)


def listed(path: Path) -> set[str]:
    return {line for line in path.read_text().splitlines() if line and not line.startswith("#")}


def read(path: Path) -> list[Case]:
    """The cases of a file, in order. Raises BadFile, saying what is wrong."""
    try:
        document = yaml.load(path.read_text(), UniqueKeys)
    except OSError as error:
        raise BadFile(f"{path} cannot be read: {error.strerror}.") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadFile(f"{path} is no YAML: {' '.join(str(error).split())}.") from None
    cases = document.get("cases") if isinstance(document, dict) else None
    if not isinstance(cases, list) or not cases:
        raise BadFile(f"{path} has no cases: it should be a mapping with `meta` and a list `cases`.")
    for number, case in enumerate(cases):
        if not isinstance(case, dict) or not {"id", "kind"} <= case.keys():
            raise BadFile(f"{path}: case number {number + 1} has no id or no kind.")
    return cases
