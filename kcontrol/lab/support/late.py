"""pandas, and the classes of tables that a notebook shows: both are imported at the first table.

The import of pandas takes two thirds of that of `Lab`; a run, its pictures and `lab.why` need no table. Import `pd` and `frames`
from here, and pandas nowhere else.
"""

import importlib
from typing import TYPE_CHECKING, Any

from kcontrol.core.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

    from kcontrol.lab.support import table_display as frames
else:

    class _Late:
        def __init__(self, module: str) -> None:
            self._module = module

        def __getattr__(self, name: str) -> Any:
            try:
                return getattr(importlib.import_module(self._module), name)
            except ModuleNotFoundError as missing:
                raise UserError(f"A table needs pandas; {missing.name} is not installed: `pip install pandas` adds it.") from None

    pd, frames = _Late("pandas"), _Late("kcontrol.lab.support.table_display")

__all__ = ["frames", "pd"]
