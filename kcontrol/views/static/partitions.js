// The partitions as ZooKeeper stores them: replicas in the order of the assignment, the leader, the ISR, and the epochs.

import { el, keyed, panel, setClass, setText, setTitle } from "./dom.js";

const HEADINGS = [
  ["partition", ""],
  ["replicas", "in the order of the assignment: the first one is preferred"],
  ["ISR", "the replicas in sync, in the order of the state znode"],
  ["leader epoch", "the number of decisions about leader and ISR"],
  ["ctrl. epoch", "the controller epoch of the last write"],
  ["zk", "the version of the state znode"],
];

// The partitions by topic and number, as kcontrol/views/picture_state.py finds them.
export const partitionsOf = ({ partitions }) => Object.values(partitions).sort((a, b) => (a.topic < b.topic ? -1 : a.topic > b.topic ? 1 : a.number - b.number));

export const nameOf = ({ topic, number }) => `${topic}-${number}`;

// Draws a square for each replica: its part in the partition, and whether its broker is dead.
export function drawReplicas(cell, partition, nodes) {
  keyed(cell, partition?.replicas ?? [], String, (broker) => el("span", "", String(broker)), (square, broker) => {
    const { leader, isr } = partition, dead = !nodes[broker];
    const [className, words] = leader === null ? ["out", "no state yet"] : leader === broker ? ["lead", "leader"] : isr.includes(broker) ? ["isr", "in sync"] : ["out", "not in sync"];
    setClass(square, `kc-rep ${className}${dead ? " dead" : ""}`);
    setTitle(square, `broker ${broker}: ${words}${dead ? ", dead" : ""}`);
  });
}

function makeRow() {
  const row = el("tr");
  row.append(...HEADINGS.map((_, i) => el("td", i ? "kc-mono" : "kc-mono kc-name")));
  return row;
}

function drawRow(row, partition, { lit, state }) {
  const { topic, number, leader, isr } = partition, name = nameOf(partition), cells = row.children, isNew = leader === null;
  const deleting = `/admin/delete_topics/${topic}` in state.znodes;
  setClass(row, lit(`/brokers/topics/${topic}/partitions/${number}/state`));
  setText(cells[0], `${deleting ? "✖ " : ""}${name}`);
  setTitle(cells[0], `${name}${deleting ? ": its deletion is requested" : ""}`);
  drawReplicas(cells[1], partition, state.nodes);
  setText(cells[2], isNew ? "new" : `${leader === -1 ? "⚠ " : ""}${isr.join(" ")}`);
  setTitle(cells[2], leader === -1 ? "no leader" : "");
  setClass(cells[2], `kc-mono${leader === -1 ? " kc-alarm" : ""}`);
  ["leader_epoch", "controller_epoch", "zk_version"].forEach((field, i) => setText(cells[3 + i], isNew ? "–" : String(partition[field])));
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
    keyed(body, scene.partitions, nameOf, makeRow, (row, partition) => drawRow(row, partition, scene));
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
