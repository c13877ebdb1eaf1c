// ZooKeeper as a tree: version, owner and text of each znode, the last change highlighted, and the Stat of the chosen znode.

import { el, keyed, panel, setClass, setText, setTitle } from "./dom.js";
import { reveal } from "./partitions.js";

const CLOSED = new Set(["/config", "/admin", "/consumers", "/cluster", "/feature", "/latest_producer_id_block", "/isr_change_notification", "/log_dir_event_notification"]);

const parentOf = (path) => path.slice(0, path.lastIndexOf("/"));
const order = new Intl.Collator("en", { numeric: true }).compare;

// The children of every path, with znodes that were just deleted, each with the name to show.
function forest(scene) {
  const paths = new Set(Object.keys(scene.state.znodes));
  for (const path of scene.gone) paths.add(path);
  const children = new Map();
  for (const path of paths) {
    for (let p = path; p; p = parentOf(p)) {
      const siblings = children.get(parentOf(p)) ?? new Set();
      if (siblings.has(p)) break;
      children.set(parentOf(p), siblings.add(p));
    }
  }
  return children;
}

// A znode without text and with one child is shown in one line with the child: `0/state`.
function entryOf(path, children, scene) {
  let shown = path;
  const below = () => [...(children.get(shown) ?? [])];
  while (parentOf(shown) && below().length === 1 && !scene.state.znodes[shown]?.[0] && path.startsWith("/brokers/topics/")) [shown] = below();
  return { path, shown, name: shown.slice(parentOf(path).length + 1), below: below().sort(order) };
}

export function znodesPanel() {
  const tree = el("ul", "kc-tree"), box = el("div", "kc-scroll", tree), stat = el("div", "kc-stat");
  const node = panel("kc-znodes", "ZooKeeper", box, stat);
  let chosen = "", scene = null, litAt = -1, changed = false, shape = "", children = new Map();

  function choose(path) {
    chosen = chosen === path ? "" : path;
    draw(scene);
  }

  function make(entry) {
    const summary = el("summary", "", el("span", "kc-twist"), el("span", "kc-path"), el("span", "kc-owner"), el("span", "kc-version"), el("span", "kc-text"));
    const details = el("details", "", summary, el("ul")), item = el("li", "", details);
    details.open = !CLOSED.has(entry.path);
    summary.addEventListener("click", (event) => {
      if (details.classList.contains("leaf")) event.preventDefault();
      choose(item.entry.shown);
    });
    return item;
  }

  function update(item, entry) {
    item.entry = entry;
    const details = item.firstChild, [summary, list] = details.children, [, name, owner, version, text] = summary.children;
    const znode = scene.state.znodes[entry.shown], gone = scene.gone.includes(entry.shown); // neither: a run of logs lacks parents
    setClass(details, `${entry.below.length ? "branch" : "leaf"} ${scene.lit(entry.shown)}${gone ? " gone" : ""}${chosen === entry.shown ? " chosen" : ""}`);
    setText(name, entry.name);
    setTitle(summary, entry.shown);
    setText(owner, znode && znode[2] !== null ? `◷ ${znode[2]}` : "");
    setTitle(owner, znode && znode[2] !== null ? `ephemeral: deleted with the session of broker ${znode[2]}` : "");
    setText(version, znode && (znode[0] || znode[1]) ? `v${znode[1]}` : "");
    setText(text, znode ? znode[0] : gone ? "gone" : "");
    if (litAt !== scene.seen.litAt && scene.seen.lit.some((path) => path.startsWith(`${entry.shown}/`))) details.open = true;
    keyed(list, entry.below.map((path) => entryOf(path, scene.children, scene)), (e) => e.path, make, update);
  }

  function drawStat() {
    const path = chosen || scene.seen.lit.at(-1) || "/controller";
    const znode = scene.state.znodes[path], { czxid, mzxid } = scene.state;
    const owner = znode && (znode[2] === null ? "no session" : `broker ${znode[2]}`);
    const zxids = path in mzxid ? ` · czxid ${czxid[path]} · mzxid ${mzxid[path]}` : "";
    const count = scene.children.get(path)?.size ?? 0;
    const line = znode ? `dataVersion ${znode[1]} · ephemeralOwner ${owner}${zxids} · dataLength ${new TextEncoder().encode(znode[0]).length} · numChildren ${count}` : "it does not exist";
    keyed(stat, [["path", path], ["text", znode?.[0] ?? ""], ["line", line]], ([k]) => k, ([k]) => el("div", `kc-${k === "line" ? "numbers" : k}`), (part, [, t]) => setText(part, t));
  }

  function draw(next) {
    scene = next;
    scene.gone = scene.seen.litAt === scene.index ? scene.seen.lit.filter((path) => !scene.state.znodes[path]) : [];
    const now = `${scene.seen.shapeAt} ${scene.gone}`;
    if (now !== shape) [shape, children] = [now, forest(scene)];
    scene.children = children;
    const top = [...(children.get("") ?? [])].sort(order).map((path) => entryOf(path, children, scene));
    keyed(tree, top, (e) => e.path, make, update);
    changed = litAt !== scene.seen.litAt;
    litAt = scene.seen.litAt;
    drawStat();
  }

  function settle(again) {
    if (!changed && !again) return;
    const lit = [...tree.querySelectorAll(".lit > summary")];
    for (const summary of [lit[0], lit.at(-1)]) if (summary) reveal(box, summary); // one write may change several znodes
  }
  return { node, draw, settle };
}
