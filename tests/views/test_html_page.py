"""A run as one page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kcontrol.core.errors import UserError
from kcontrol.journal.journal import OUTSIDE, Record, RecordId
from kcontrol.views import bundle, html_page
from kcontrol.views.explanations import STATIC
from tests.views.support import NASTY, story


def test_it_loads_nothing() -> None:
    """The page names no address but those of XML's name spaces, and forbids the browser to load anything."""
    page = html_page.html_page(story(), "A run")
    assert set(re.findall(r"https?://[^\"'\s<]+", page)) == {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in page


def test_outside_text_cannot_leave_the_script() -> None:
    """No text of a record ends the script element or begins another one."""
    name = f"</script><script>alert(1)</script>{NASTY}\u2028<!--"
    record = Record(RecordId(OUTSIDE, 0, 1), "act", None, 0, {"action": ["create_topic", name]})
    page = html_page.html_page([record], name)
    assert page.count("<script") == page.count("</script>") == 1
    assert "<img" not in page
    assert "&lt;/script&gt;" in page[: page.index("</title>")]


def test_a_page_that_cannot_be_written(tmp_path: Path) -> None:
    """A folder in the place of the file is one sentence."""
    with pytest.raises(UserError, match="cannot be written"):
        html_page.write_html(story(), tmp_path, "A run")


def test_every_module_is_in_the_bundle() -> None:
    """The viewer's modules are the folder but for the question's script, each after what it imports; no import is left over."""
    assert {path.stem for path in STATIC.glob("*.js")} == {*bundle.MODULES, "viewer", "question"}
    assert not re.search(r"^import ", (STATIC / "question.js").read_text(encoding="utf-8"), re.MULTILINE)
    seen = {"tables"}  # made of tables in Python
    for name in (*bundle.MODULES, "viewer"):
        source = (STATIC / f"{name}.js").read_text(encoding="utf-8")
        assert set(re.findall(r'from "\./(\w+)\.js"', source)) <= seen, name
        seen.add(name)
    assert not re.search(r"^import ", bundle.script(), re.MULTILINE)


def test_modules_are_small() -> None:
    """JavaScript and style obey the rule for modules: readable in one go."""
    for path in STATIC.iterdir():
        assert len(path.read_text(encoding="utf-8").splitlines()) < 350, path.name


def test_text_never_becomes_markup() -> None:
    """No module uses a way by which text could become elements or code."""
    banned = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|setTimeout\(\s*[\"']")
    for path in STATIC.glob("*.js"):
        assert not banned.search(path.read_text(encoding="utf-8")), path.name
