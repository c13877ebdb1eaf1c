"""Finds ZIP files where journals, logs or segments are expected: Spark does not unpack them."""

from pathlib import Path

from kcontrol.core.errors import UserError, listed

ZIP = b"PK\x03\x04"


def refuse(path: Path) -> None:
    """Raise UserError, which says that the file must be unpacked, if `path` is a ZIP file."""
    if path.is_file() and begins_as_zip(path):
        raise UserError(f"{path} is a ZIP file: unpack it first.")


def begins_as_zip(path: Path) -> bool:
    """Return whether a file has the first bytes of a ZIP file. Raises OSError if the file cannot be read."""
    with path.open("rb") as file:
        return file.read(len(ZIP)) == ZIP


def advice(folder: Path, otherwise: str) -> str:
    """Return advice such as "unpack the ZIP file a.zip first" for a folder with ZIP files, else the text `otherwise`."""
    names = sorted(path.name for path in folder.rglob("*") if path.suffix.lower() == ".zip") if folder.is_dir() else []
    if not names:
        return otherwise
    return f"unpack the ZIP file {names[0]} first" if len(names) == 1 else f"unpack the ZIP files {listed(names)} first"
