// The strips of consumer groups: pictures from Python, with a line, the title and the flags at the record that is shown, and
// their text beside them. The strips of a compared run are below.

import { indexBeside } from "./beside.js";
import { el, keyed, panel, setText, svg, titled } from "./dom.js";
import { lastNotAbove } from "./timeline.js";

function figure() {
  const name = el("figcaption"), picture = el("img"), flags = svg("svg", { "aria-hidden": true }), now = el("i", "kc-strip-now"), words = el("pre");
  const box = el("div", "kc-scroll", el("div", "kc-strip-box", picture, flags, now));
  const node = el("figure", "kc-strip", name, box, el("details", "", el("summary", "", "as text"), words));
  return Object.assign(node, { name, box, picture, flags, now, words });
}

// Scrolls a picture that is wider than its column to the line when the line moves; at first the names on the left are visible.
function follow(node) {
  const { left } = node.now.style;
  if (node.followed && node.followed !== left) node.box.scrollLeft = node.now.offsetLeft - 0.7 * node.box.clientWidth;
  node.followed = left;
}

function show(node, { strip, run, index }) {
  const isNow = ([from, until]) => from <= index && index < (until ?? Infinity), text = strip.text.filter(isNow).map(([, , line]) => line);
  setText(node.name, run);
  if (node.shown !== strip.svg) node.picture.src = `data:image/svg+xml,${encodeURIComponent((node.shown = strip.svg))}`;
  [node.picture.alt] = text;
  setText(node.words, text.join("\n"));
  node.flags.setAttribute("viewBox", strip.box);
  node.flags.replaceChildren(...strip.flags.filter(isNow).flatMap(([, , d, x, y, className, words, event]) => (
    [titled(svg("path", { d, class: className }), event), svg("text", { x, y, class: className }, words)])));
  const at = lastNotAbove(strip.marks.map(([record]) => record), index);
  node.now.hidden = at < 0;
  node.now.style.left = `${100 * (strip.marks[at]?.[1] ?? 0)}%`;
}

export function groupsPanel() {
  const list = el("div"), node = panel("kc-groups", "consumer groups", list);
  function draw(scene) {
    const { strips, otherName, index } = scene, compared = otherName ? scene.otherStrips : [];
    const own = strips.map((strip) => ({ strip, index, run: compared.length ? scene.branch || scene.title || `release ${scene.release}` : "", key: strip.group }));
    const others = compared.map((strip) => ({ strip, index: indexBeside(scene), run: otherName, key: `other ${strip.group}` }));
    node.hidden = !own.length && !others.length;
    keyed(list, [...own, ...others], ({ key }) => key, figure, show);
  }
  return { node, draw, settle: () => [...list.children].forEach(follow) };
}
