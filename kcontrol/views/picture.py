"""The frame, the style and the texts of pictures that are written as SVG."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from html import escape
from typing import Any

from kcontrol.views import bundle, text

WIDTH, MARGIN = 760, 16
# JupyterLab shows a picture as an image, so only a media query in these style sheets can adapt its colours to a dark theme.
STYLE, STRIP_STYLE, WHEEL_STYLE = (bundle.style(name).replace("\n", "") for name in ("picture", "strip", "wheel"))
FITS = ' style="max-width:100%;height:auto"'  # a page that is narrower than the picture shows the picture smaller


class Picture(ABC):
    """What a notebook shows as SVG and a terminal as text."""

    @abstractmethod
    def svg(self) -> str: ...

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"image/svg+xml": self.svg(), "text/plain": repr(self)}


def frame(width: float, height: float, name: str, parts: Iterable[str], style: str = STYLE, attributes: str = "") -> str:
    """The SVG of `parts`; `name` is read to readers who do not see it. `attributes` begin with a space, as FITS does."""
    words = escape(text.clean(name, max(1, len(name))), quote=True)
    size = f'width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}"{attributes}'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{words}" font-family="system-ui,sans-serif">'
    return f"{head}<style>{style}</style>{''.join(parts)}</svg>"


def label(x: float, y: float, words: str, css: str = "ink", size: int = 13, anchor: str = "start") -> str:
    """`css` is a class, `size` is in pixels, `anchor` is "start", "middle" or "end". The text is escaped."""
    return f'<text x="{x}" y="{y}" class="{css}" font-size="{size}" text-anchor="{anchor}">{escape(text.clean(words))}</text>'


def shortened(name: str, longest: int) -> str:
    """Return a name as one line of at most `longest` characters; a longer name is cut in the middle: "long…name"."""
    # The end has the number of a partition, and that of a consumer among others of its application.
    end = longest // 2
    return text.clean(name, longest) if len(name) <= longest else text.clean(f"{name[: longest - end - 1]}…{name[-end:]}")
