// The journal, of which only the visible lines exist, and the chain of causes of the chosen record.

import { button, el, enable, keyed, panel, setClass, setText, setTitle } from "./dom.js";
import { keyOf, lastNotAbove } from "./timeline.js";

const HIGH = 21;

export function journalPanel(ask, setDetails) {
  const sheet = el("div", "kc-sheet"), box = el("div", "kc-journal", sheet);
  box.setAttribute("role", "listbox");
  box.setAttribute("aria-label", "journal");
  const details = el("input");
  details.type = "checkbox";
  details.addEventListener("change", () => setDetails(details.checked));
  const node = panel("kc-journal-panel", "Journal: click to ask why", box);
  node.firstChild.append(el("label", "kc-details", details, "every record"));
  let scene = null, top = 0; // `top` is the last scroll position, which a box loses when it is removed from the page

  function make(index) {
    const record = scene.timeline.records[index];
    const line = el("div", "", el("span", "kc-id", keyOf(record.id)), el("span", "kc-kind", record.kind), el("span", "kc-say", record.say));
    line.setAttribute("role", "option");
    line.dataset.do = "why";
    line.addEventListener("click", () => ask(index));
    setTitle(line, record.say);
    return line;
  }

  // Draws the visible rows, from the scroll position and the height of the box.
  function drawLines() {
    top = box.scrollTop;
    const first = Math.max(0, Math.floor(top / HIGH) - 2), count = Math.ceil(box.clientHeight / HIGH) + 4;
    const here = scene.columns[Math.max(0, lastNotAbove(scene.columns, scene.index))]; // a record without a line is shown at the line before it
    const rows = scene.columns.slice(first, first + count).map((index, i) => ({ index, y: (first + i) * HIGH }));
    keyed(sheet, rows, (row) => row.index, (row) => make(row.index), (line, { index, y }) => {
      const weight = scene.timeline.records[index].weight;
      setClass(line, `kc-line${index === here ? " here" : ""}${index > scene.index ? " later" : ""}${scene.why.has(index) ? " why" : ""}${weight > 1 ? " act" : ""}`);
      line.setAttribute("aria-selected", String(index === here));
      if (line.y !== y) line.style.transform = `translateY(${(line.y = y)}px)`;
    });
  }
  box.addEventListener("scroll", () => scene && drawLines());
  // A widget is drawn before it is on the page, or in a hidden tab: its height is known only later.
  new ResizeObserver(() => scene && settle(true)).observe(box);

  function draw(next) {
    if (scene?.columns !== next.columns) {
      sheet.replaceChildren();
      sheet.keyed?.clear();
    }
    scene = next;
    details.checked = scene.details;
    sheet.style.height = `${scene.columns.length * HIGH}px`;
  }

  // Keeps the present record visible. A box without a height has no visible lines and cannot be scrolled.
  function settle(again) {
    const height = box.clientHeight;
    if (!height) return;
    if (again) box.scrollTop = top;
    const at = Math.max(0, lastNotAbove(scene.columns, scene.index)) * HIGH;
    if (at < box.scrollTop + HIGH || at > box.scrollTop + height - 2 * HIGH) box.scrollTop = at - 3 * HIGH;
    drawLines();
  }
  return { node, draw, settle };
}

// ---------------------------------------------------------------- why

// The chain ends with an action from outside. A run with branches can be played again without this action.
export function whyPanel(goTo, close, without) {
  const list = el("ol", "kc-chain");
  const node = panel("kc-why", "Why: causes, nearest first", list);
  const spare = button("click_without", "without this", "play the run again without this, and compare", () => without(root));
  let root = 0;
  node.firstChild.append(button("why", "×", "close the chain of causes", close));
  function make({ record, index, explained }) {
    const link = el("button", "kc-link", el("span", "kc-id", keyOf(record.id)), el("span", "kc-say", record.say));
    link.type = "button";
    link.dataset.do = "to";
    link.addEventListener("click", () => goTo(index));
    return el("li", "", link, ...explained.map((words) => el("small", "", words)));
  }
  function draw(scene) {
    node.hidden = scene.chain.length === 0;
    const items = scene.chain.map((index) => ({ index, record: scene.timeline.records[index], explained: scene.timeline.explained(index) }));
    keyed(list, items, (item) => item.index, make, (item, { index }) => setClass(item, index === scene.index ? "here" : ""));
    const last = items.at(-1)?.record;
    root = items.at(-1)?.index ?? 0;
    spare.hidden = !scene.branches.length || !last || last.kind === "run" || (last.kind === "enqueue" && last.fields.event.event === "ReplicaCaughtUp");
    enable(spare, !scene.busy && !scene.held);
    if (!spare.hidden && spare.parentNode !== list.lastChild) list.lastChild.append(spare);
  }
  return { node, draw };
}
