"""Check case files against the schema that their meta names: python -m tests.conformance.validate FILE [FILE ...]."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from tests.conformance.cases import UniqueKeys

HERE = Path(__file__).resolve().parent


def problems(path: Path) -> Iterator[str]:
    """What is wrong with a file: keys or ids that are there twice, what the schema refuses, answers without a request."""
    document = _plain(yaml.load(path.read_text(), UniqueKeys))
    schema = HERE / Path(document["meta"]["schema"]).name
    for error in jsonschema.Draft202012Validator(json.loads(schema.read_text())).iter_errors(document):
        at, message = _deepest(error)
        named = document["cases"][at[1]].get("id") if at[:1] == ["cases"] and len(at) > 1 else ""
        yield f"{named} {'/'.join(map(str, at[2:]))}: {message[:300]}"
    ids = [case.get("id") for case in document["cases"]]
    yield from (f"{id}: is there twice" for id in sorted({id for id in ids if ids.count(id) > 1}))
    for case in document["cases"]:
        if case.get("kind") == "broker_fencing" and len(case["when"]) != len(case["then"]["responses"]):
            yield f"{case['id']}: has not one response per request"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _deepest(error: Any) -> tuple[list[Any], str]:
    """Of several alternatives that were all refused, the complaint of the one that went furthest."""
    while error.context:
        error = max(error.context, key=lambda e: (len(e.path), "const" not in e.schema))
    return list(error.absolute_path), error.message


def main(names: list[str]) -> int:
    """Print every problem; return 1 if there is one."""
    found = [f"{name}: {problem}" for name in names for problem in problems(Path(name))]
    print("\n".join(found) or "no problem")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
