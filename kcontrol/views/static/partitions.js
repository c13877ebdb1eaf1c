// The partitions as ZooKeeper stores them: replicas in the order of the assignment, the leader, the ISR, and the epochs.

import { el, keyed, panel, setClass, setText, setTitle } from "./dom.js";
import { parsed } from "./timeline.js";

const HEADINGS = [
  ["partition", ""],
  ["replicas", "in the order of the assignment: the first one is preferred"],
  ["ISR", "the replicas in sync, in the order of the state znode"],
  ["leader epoch", "the number of decisions about leader and ISR"],
  ["ctrl. epoch", "the controller epoch of the last write"],
  ["zk", "the version of the state znode"],
];

// Every assigned partition; a topic znode or a state znode that cannot be decoded counts as missing.
export function partitionsOf(state) {
  const found = [];
  for (const path in state.znodes) {
    const topic = path.startsWith("/brokers/topics/") ? path.slice(16) : "";
    if (!topic || topic.includes("/")) continue;
    for (const [number, replicas] of Object.entries(parsed(state.znodes[path][0])?.partitions ?? {})) {
      if (!Array.isArray(replicas)) continue;
      const statePath = `${path}/partitions/${number}/state`, stored = state.znodes[statePath];
      const value = stored ? parsed(stored[0]) : null;
      const readable = value && Array.isArray(value.isr) ? value : null;
      const deleting = `/admin/delete_topics/${topic}` in state.znodes;
      found.push({ deleting, topic, number: +number, name: `${topic}-${number}`, replicas, path: statePath, value: readable, version: stored?.[1] });
    }
  }
  return found.sort((a, b) => (a.topic < b.topic ? -1 : a.topic > b.topic ? 1 : a.number - b.number));
}

export function standingOf(broker, value) {
  if (!value) return ["out", "no state yet"];
  if (value.leader === broker) return ["lead", "leader"];
  return value.isr.includes(broker) ? ["isr", "in sync"] : ["out", "not in sync"];
}

function makeRow() {
  const row = el("tr");
  row.append(...HEADINGS.map((_, i) => el("td", i ? "kc-mono" : "kc-mono kc-name")));
  return row;
}

function drawRow(row, partition, scene) {
  const { value } = partition, cells = row.children;
  setClass(row, scene.lit(partition.path));
  setText(cells[0], `${partition.deleting ? "✖ " : ""}${partition.name}`);
  setTitle(cells[0], `${partition.name}${partition.deleting ? ": its deletion is requested" : ""}`);
  keyed(cells[1], partition.replicas, String, (broker) => el("span", "", String(broker)), (square, broker) => {
    const [className, words] = standingOf(broker, value), dead = !scene.state.nodes[broker];
    setClass(square, `kc-rep ${className}${dead ? " dead" : ""}`);
    setTitle(square, `broker ${broker}: ${words}${dead ? ", dead" : ""}`);
  });
  const leaderless = value && value.leader === -1;
  setText(cells[2], value ? `${leaderless ? "⚠ " : ""}${value.isr.join(" ")}` : "new");
  setTitle(cells[2], leaderless ? "no leader" : "");
  setClass(cells[2], `kc-mono${leaderless ? " kc-alarm" : ""}`);
  setText(cells[3], value ? String(value.leader_epoch) : "–");
  setText(cells[4], value ? String(value.controller_epoch) : "–");
  setText(cells[5], value ? String(partition.version) : "–");
}

function legend() {
  const entry = (className, text) => el("span", "kc-entry", el("span", `kc-rep ${className}`, "1"), text);
  return el("p", "kc-legend", entry("lead", "leads"), entry("isr", "in sync"), entry("out", "not in sync"), entry("isr dead", "dead"));
}

export function partitionsPanel() {
  const head = el("tr"), body = el("tbody"), none = el("p", "kc-dim", "no topics");
  for (const [text, title] of HEADINGS) {
    const cell = el("th", "", text);
    cell.scope = "col";
    setTitle(cell, title);
    head.append(cell);
  }
  const table = el("table", "", el("thead", "", head), body), box = el("div", "kc-scroll", table, none);
  const node = panel("kc-partitions", "Partitions, as stored", box, legend());
  let litAt = -1, changed = false;
  const draw = (scene) => {
    none.hidden = scene.partitions.length > 0;
    table.hidden = !none.hidden;
    const most = Math.max(3, ...scene.partitions.map((partition) => partition.replicas.length));
    table.style.setProperty("--replicas", Math.min(most, 5)); // more replicas are drawn in several lines
    keyed(body, scene.partitions, (p) => p.path, makeRow, (row, partition) => drawRow(row, partition, scene));
    changed = litAt !== scene.seen.litAt;
    litAt = scene.seen.litAt;
  };
  const settle = (again) => {
    const lit = (changed || again) && body.querySelector(".lit");
    if (lit) reveal(box, lit);
  };
  return { node, draw, settle };
}

// Scrolls `box`, and no element around it, until `item` is visible.
export function reveal(box, item) {
  const outer = box.getBoundingClientRect(), inner = item.getBoundingClientRect();
  const above = inner.top - outer.top - 24, below = inner.bottom - outer.bottom + 4;
  if (above < 0) box.scrollTop += above;
  else if (below > 0) box.scrollTop += below;
}
