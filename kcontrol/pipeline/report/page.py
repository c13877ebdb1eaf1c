"""Writes the report as one page of HTML and SVG without scripts: a timeline of the runs, four sections, and all of their rows.

In the row of a run, each number links to the table rows that it counts; a total links to the numbers that it adds.
"""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from kcontrol.core.errors import UserError
from kcontrol.pipeline.report.sections import Section
from kcontrol.pipeline.report.tables import Row, RunTimes
from kcontrol.views import clock, text
from kcontrol.views.group_strip import COLOURS

GENERATOR = '<meta name="generator" content="kcontrol pipeline report">'
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
NARROWEST, NUMBERED = 0.4, 4.0  # per cent of a line: the least width of a bar, and of a bar with its number
STYLE = """
:root{color-scheme:light dark;--ink:#1f2328;--dim:#57606a;--page:#fafbfc;--card:#fff;--rule:#d8dde3;--link:#0550ae;--bad:#c2410c}
@media (prefers-color-scheme:dark){:root{--ink:#e6e8ea;--dim:#a2a9b1;--page:#0e0f12;--card:#16181c;--rule:#3a4048;
--link:#7cc4f0;--bad:#ff9360}}
body{margin:16px auto;max-width:1080px;padding:0 12px;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
h1{font-size:24px}h2{margin-top:40px;font-size:19px}h3{font-size:15px}a{color:var(--link)}p,caption{color:var(--dim)}
.wide{overflow-x:auto}table{border-collapse:collapse;background:var(--card);font-variant-numeric:tabular-nums}
th,td{border:1px solid var(--rule);padding:3px 9px;text-align:left}td{white-space:nowrap}
th[scope=row]{overflow-wrap:anywhere;min-width:140px;font-size:13px}
td.number,th.number{text-align:right}
tr:target,th:target,h2:target,h3:target,span:target{outline:3px solid var(--link);outline-offset:-2px}
caption{text-align:left;padding:6px 0}
.line{display:grid;grid-template-columns:minmax(90px,210px) 1fr 70px;gap:2px 10px;align-items:center;margin:9px 0}
.line>.name{overflow-wrap:anywhere;font-size:13px;line-height:1.25}.line>.size{color:var(--dim);font-size:13px;text-align:right}
svg{display:block;width:100%;height:38px;background:var(--card);border:1px solid var(--rule);box-sizing:border-box}
.number-in{fill:#fff;font:700 12px system-ui,sans-serif;paint-order:stroke;stroke:#1f2328;stroke-width:2.5px}
.off{fill:url(#hatch);stroke:var(--bad);stroke-width:1.5}.hatch{stroke:var(--bad);stroke-width:3}.legend{font-size:13px}
"""
HATCH = (
    '<svg style="position:absolute;width:0;height:0;border:0" aria-hidden="true"><defs><pattern id="hatch" width="6" height="6" '
    'patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path class="hatch" d="M0 0V6"/></pattern></defs></svg>'
)
OFF = 'class="off"'
EMPTY = "The tables have no row about this."


def html_report(title: str, runs: Sequence[RunTimes], found: Sequence[Section], zone: str | None = None) -> str:
    """Return the report as an HTML page: an overview and a timeline of `runs`, and the sections `found`.

    `zone` is the zone of the times in broker logs, such as "in UTC"; None for journals.
    """
    numbers = {run.name: number for number, run in enumerate(runs, 1)}
    parts = [_overview(runs, found, numbers), _timeline(runs, found), *(_section(one, numbers) for one in found)]
    records = text.counted(sum(run.records for run in runs), "journal record")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"{GENERATOR}"
        f"<title>{_words(title)}</title><style>{STYLE}</style></head>\n<body>{HATCH}<main><h1>{_words(title)}</h1>\n"
        f"<p>{text.counted(len(runs), 'run')} with {records}. Each number of a run is a link to its rows; a total is a link "
        f"to the numbers that it adds.{_evidence(found, zone)}</p>\n{''.join(parts)}</main></body></html>\n"
    )


def _evidence(found: Sequence[Section], zone: str | None) -> str:
    """The zone of times and the number of inferred values of rows from broker logs; "" for journals."""
    if zone is None:
        return ""
    counts = ", ".join(f"{section.inferred:,} of {len(section.rows):,} {section.title.lower()}" for section in found)
    return (
        f" The rows are from broker logs, with times {_words(zone)}; each names its line. In the column <b>inferred</b> are the "
        f"values that no line has: in {counts}."
    )


def write_report(path: Path, title: str, runs: Sequence[RunTimes], found: Sequence[Section], zone: str | None = None) -> None:
    """Replaces an earlier report only. Raises UserError for another file, or one that cannot be written."""
    try:
        if path.exists() and (not path.is_file() or GENERATOR not in path.read_text(encoding="utf-8", errors="replace")[:2000]):
            raise UserError(f"{path} is there already and is no report of kcontrol: name another page.")
        path.write_text(html_report(title, runs, found, zone), encoding="utf-8")
    except OSError as problem:
        raise UserError(f"The page cannot be written to {path}: {problem.strerror}; name another file.") from None


def _words(value: Any) -> str:
    """Return a value as HTML text: escaped, on one line; "" for None."""
    return "" if value is None else escape(text.clean(str(value)), quote=True)


def _link(number: int, target: str, words: str | None = None) -> str:
    """The number 0 has no link."""
    shown = f"{number:,}" if words is None else _words(words)
    return f'<td class="number"><a href="#{target}">{shown}</a></td>' if number else f'<td class="number">{shown}</td>'


def _table(heads: Sequence[str], rows: Sequence[str], caption: str = "") -> str:
    """Return an HTML table. `heads` are <th> elements, `rows` <tr> elements, and `caption` is HTML, "" for no caption."""
    named = f"<caption>{caption}</caption>" if caption else ""
    return (
        f'<div class="wide"><table>{named}<thead><tr>{"".join(heads)}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>\n'
    )


def _head(words: str, id: str = "", css: str = "") -> str:
    named = f' id="{id}"' if id else ""
    return f'<th scope="col"{named} class="{css}">{_words(words)}</th>'


def _overview(runs: Sequence[RunTimes], found: Sequence[Section], numbers: Mapping[str, int]) -> str:
    """Return the page's first table as HTML: for each run its length and its rows in each section, then totals.

    `numbers` maps a run's name to the number in element ids: 2 in "offline-r2".
    """
    counts = {section.id: section.by_run() for section in found}
    rows = []
    for run in runs:
        cells = [_link(counted[run.name], f"{id}-r{numbers[run.name]}") for id, counted in counts.items()]
        rows.append(f'<tr><th scope="row">{_words(run.name)}</th><td class="number">{_length(run)}</td>{"".join(cells)}</tr>')
    total = [_link(len(section.rows), section.id) for section in found]
    rows.append(f'<tr><th scope="row">all runs</th><td></td>{"".join(total)}</tr>')
    heads = [_head("run"), _head("length", css="number"), *(_head(section.title.lower(), css="number") for section in found)]
    return _table(heads, rows)


def _length(run: RunTimes) -> str:
    return text.counted(run.records, "record") if run.begin_ms is None else clock.duration(run.length)


# ---------------------------------------------------------------- the timeline


def _timeline(runs: Sequence[RunTimes], found: Sequence[Section]) -> str:
    rows: dict[tuple[str, str], list[Row]] = {}
    for section in found:
        for row in section.rows:
            rows.setdefault((section.id, row["run"]), []).append(row)
    brokers = sorted(
        {row["broker"] for (id, _), held in rows.items() if id == "tenures" for row in held if row["broker"] is not None}
    )
    colours = {broker: COLOURS[place % len(COLOURS)] for place, broker in enumerate(brokers)}
    lines = []
    for run in runs:
        tenures, windows = rows.get(("tenures", run.name), []), rows.get(("offline", run.name), [])
        fills = [f'fill="{colours.get(row["broker"], COLOURS[-1])}"' for row in tenures]
        bars = [_bar(run, row, fill, 2, 17, row["key"]) for row, fill in zip(tenures, fills, strict=True)]
        bars += [f'<a href="#{_id("offline", row)}">{_bar(run, row, OFF, 22, 12, "")}</a>' for row in windows]
        about = _words(f"{run.name}: {text.counted(len(tenures), 'tenure')}, {text.counted(len(windows), 'offline window')}")
        drawn = f'<svg role="group" aria-label="{about}">{"".join(bars)}</svg>'
        size = f'<span class="size">{_length(run)}</span>'
        lines.append(f'<div class="line"><span class="name">{_words(run.name)}</span>{drawn}{size}</div>')
    legend = (
        '<p class="legend">Upper half of a line: the controllers, each with the number of its broker. Lower half, hatched: '
        "windows in which a partition had no running leader; each is a link to its row. Each line is as wide as the page.</p>"
    )
    return f'<h2 id="timeline">Timeline</h2>{legend}{"".join(lines)}\n'


def _bar(run: RunTimes, row: Row, look: str, y: int, height: int, words: str) -> str:
    """Return the SVG bar of a table row with a begin and an end, such as an offline window; `words` is the text in the bar.

    `look` is the attribute `fill="..."` or `class="..."`; `y` and `height` are in pixels.
    """
    begin, end = _place(run, row["begin_ms"], row["n"]), _place(run, row["end_ms"], row["end_n"])
    begin = min(begin, 100 - NARROWEST)
    width = max(NARROWEST, end - begin)
    about = row.get("partition") or f"controller {words}"
    title = f"<title>{_words(about)}: {_words(row['key'])}, {_words(row['from'])}, {_words(row['for'])}</title>"
    bar = f'<rect x="{begin:.2f}%" y="{y}" width="{width:.2f}%" height="{height}" {look}>{title}</rect>'
    if not words or width < NUMBERED:
        return bar
    middle = f'x="{begin + width / 2:.2f}%" y="{y + height - 4}" text-anchor="middle"'
    return f'{bar}<text {middle} class="number-in">{_words(words)}</text>'


def _place(run: RunTimes, at_ms: int | None, n: int | None) -> float:
    """From 0 (begin) to 100 (end, also for None): by time or, in a run without times, by record number."""
    if run.begin_ms is not None and at_ms is not None:
        return 100 * (at_ms - run.begin_ms) / max(1, run.length)
    return 100 * n / max(1, run.records) if n is not None and run.begin_ms is None else 100


# ---------------------------------------------------------------- a section


def _id(id: str, row: Row) -> str:
    return f"{id}-row{row['place']}"


def _section(section: Section, numbers: Mapping[str, int]) -> str:
    start = f'<h2 id="{section.id}">{_words(section.title)}</h2>'
    if not section.rows:
        return f"{start}<p>{EMPTY}</p>\n"
    return start + _counts(section, numbers) + _durations(section) + _rows(section, numbers)


def _counts(section: Section, numbers: Mapping[str, int]) -> str:
    """Return a section's table of counts in HTML: a row per run, a column per key, such as a reason, and totals.

    `numbers` maps a run's name to the number in element ids: 2 in "offline-r2".
    """
    counts, keys = section.counts(), section.keys
    named = [_head(key, f"{section.id}-k{place}", "number") for place, key in enumerate(keys)]
    heads = [_head("run"), *named, _head("all", css="number")]
    rows = []
    for run in sorted({row["run"] for row in section.rows}):
        # The ids of links contain the number of the run, from 1.
        at = f"{section.id}-r{numbers[run]}"
        cells = [_link(counts[run, key], f"{at}-k{place}") for place, key in enumerate(keys)]
        rows.append(
            f'<tr><th scope="row">{_words(run)}</th>{"".join(cells)}{_link(sum(counts[run, key] for key in keys), at)}</tr>'
        )
    sums = [_link(total, f"{section.id}-k{place}") for place, total in enumerate(section.by_key().values())]
    rows.append(f'<tr><th scope="row">all runs</th>{"".join(sums)}{_link(len(section.rows), section.id)}</tr>')
    return _table(heads, rows, f"Number by {section.key}")


def _durations(section: Section) -> str:
    found = section.durations()
    if not found:
        return ""
    places = {key: place for place, key in enumerate(section.keys)}
    rows = []
    for one in found:
        at = f"{section.id}-k{places[one.key]}"
        cells = [_link(one.ended, at), _link(1, at, clock.duration(one.total_ms)), _link(1, at, clock.duration(one.median_ms))]
        cells.append(_link(1, _id(section.id, one.longest), clock.duration(one.longest["duration_ms"])))
        rows.append(f'<tr><th scope="row">{_words(one.key)}</th>{"".join(cells)}</tr>')
    names = ("ended", "sum", "median", "longest")
    return "<h3>Durations</h3>" + _table([_head(section.key), *(_head(name, css="number") for name in names)], rows)


def _rows(section: Section, numbers: Mapping[str, int]) -> str:
    """Return the section's rows in HTML, one table per run and key, such as the reason of a rebalance.

    `numbers` maps a run's name to the number in element ids: 2 in "offline-r2".
    """
    # The numbers in the table of counts (`_counts`) are links to these tables.
    places = {key: place for place, key in enumerate(section.keys)}
    parts, last, last_run = ["<h3>Rows</h3>"], ("", ""), ""
    heads = [_head(words) for words in ("record", *(column.replace("_", " ") for column in section.columns))]
    held: list[str] = []
    for row in [*section.rows, None]:
        if held and (row is None or (row["run"], row["key"]) != last):
            at = f"{section.id}-r{numbers[last[0]]}"
            if last[0] != last_run:
                parts.append(f'<h3 id="{at}">{_words(last[0])}</h3>')
            caption = f'<span id="{at}-k{places[last[1]]}">{_words(section.key)} {_words(last[1])}: {len(held):,}</span>'
            parts.append(_table(heads, held, caption))
            held, last_run = [], last[0]
        if row is not None:
            last = row["run"], row["key"]
            cells = "".join(f"<td>{_words(row[column])}</td>" for column in section.columns)
            held.append(f'<tr id="{_id(section.id, row)}"><td>{_words(row["record"])}</td>{cells}</tr>')
    return "".join(parts)
