// The log of every replica: its records by offset, the high watermark as a line, the end of the log, leader epochs, and the
// records of the last truncation. A run without logs has no such panel.

import { el, keyed, panel, plural, setClass, setText, setTitle } from "./dom.js";
import { nameOf } from "./partitions.js";
import { keyOf } from "./timeline.js";

const MOST = 24; // the latest records are visible, at most this many

const endOf = (log) => Math.max((log.records.at(-1)?.offset ?? -1) + 1, log.empty_until ?? 0); // a cleaned log has gaps
const byNumber = new Intl.Collator("en", { numeric: true }).compare;

// For each partition with logs: its name, the visible offsets, and a replica for each log, in the order of the assignment.
export function strips(scene) {
  const found = new Map(), { logs } = scene.state, order = new Map(scene.partitions.map((p) => [nameOf(p), p]));
  for (const broker of Object.keys(logs)) {
    for (const name of Object.keys(logs[broker])) found.set(name, [...(found.get(name) ?? []), replica(broker, name, scene)]);
  }
  return [...found.keys()].sort(byNumber).map((name) => {
    const assigned = order.get(name)?.replicas ?? [], replicas = found.get(name);
    const place = ({ broker }) => (assigned.includes(+broker) ? assigned.indexOf(+broker) : assigned.length);
    replicas.sort((a, b) => place(a) - place(b) || byNumber(a.broker, b.broker));
    const end = Math.max(...replicas.map(({ log, cut }) => Math.max(endOf(log), cut ? cut.offset + cut.removed.length : 0)));
    return { name, replicas, first: Math.max(0, end - MOST), end, lost: scene.state.lost[name] ?? [] };
  });
}

function replica(broker, name, scene) {
  const [id, offset, removed] = scene.state.cuts[broker]?.[name] ?? [];
  const cut = id && { isNow: id === keyOf(scene.record.id), offset, removed };
  return { broker, log: scene.state.logs[broker][name], cut, dead: !scene.state.nodes[broker] };
}

function roleOf({ broker, log, dead }) {
  if (dead) return "dead";
  if (String(log.leader) === broker) return "leads";
  return log.leader === -1 ? "neither leads nor follows" : `follows ${log.leader}`;
}

// The squares of one replica: its records, and behind them the records that were just truncated.
export function squares({ log, cut }, first) {
  const own = log.records.filter(({ offset }) => offset >= first).map((record) => {
    const starts = log.epochs.some((epoch) => epoch.start_offset === record.offset);
    const state = record.offset < log.high_watermark ? "safe" : "open";
    const words = record.offset < log.high_watermark ? "below the high watermark" : "above the high watermark";
    return { key: `r${record.offset}`, record, className: `kc-square ${state}${starts ? " starts" : ""}${record.offset === log.high_watermark ? " line" : ""}`, words };
  });
  const gone = (cut?.removed ?? []).filter((record) => record.offset >= Math.max(first, endOf(log))).map((record) => (
    { key: `c${record.offset}`, record, className: `kc-square cut${cut.isNow ? " now" : ""}${record.offset === log.high_watermark ? " line" : ""}`, words: "cut off" }));
  return [...own, ...gone];
}

function numbers({ log }) {
  const epochs = log.epochs.map((epoch) => `${epoch.leader_epoch} from ${epoch.start_offset}`).join(", ");
  return `end ${endOf(log)} · high watermark ${log.high_watermark}${epochs ? ` · leader epoch ${epochs}` : ""}`;
}

function drawReplica(row, one, first) {
  const [label, box, text] = row.children, role = roleOf(one), items = squares(one, first);
  setClass(row, `kc-replica${one.dead ? " dead" : ""}${role === "leads" ? " leads" : ""}`);
  setText(label, `broker ${one.broker} ${role}`);
  keyed(box.firstChild, items, (item) => item.key, () => el("span"), (square, { record, className, words }) => {
    setText(square, String(record.offset));
    setClass(square, className);
    square.dataset.epoch = record.leader_epoch;
    setTitle(square, `offset ${record.offset}, leader epoch ${record.leader_epoch}, ${record.value}: ${words}`);
  });
  setClass(box, `kc-log${items.some(({ className }) => className.includes(" line")) || one.log.high_watermark < first ? "" : " line"}`);
  setText(text, numbers(one));
}

export function replicasPanel() {
  const list = el("div", "kc-scroll");
  const entry = (className, text) => el("span", "kc-entry", el("span", `kc-square ${className}`, "5"), text);
  const legend = el("p", "kc-legend", entry("safe", "below the high watermark"), entry("open line", "above it"), entry("safe starts", "first of leader epoch e2"), entry("cut", "cut off"));
  const node = panel("kc-replicas", "Replicas: records by offset", list, legend);

  const makeReplica = () => el("div", "", el("span", "kc-label"), el("span", "kc-log", el("span", "kc-squares")), el("span", "kc-numbers"));
  const makeStrip = () => el("section", "kc-strip-of", el("div", "kc-row", el("b", "kc-mono"), el("span", "kc-dim"), el("span", "kc-alarm")), el("div"));

  function draw(scene) {
    node.hidden = !scene.state.logs || Object.values(scene.state.logs).every((held) => !Object.keys(held).length);
    if (node.hidden) return;
    keyed(list, strips(scene), (strip) => strip.name, makeStrip, (section, strip) => {
      const [name, before, lost] = section.firstChild.children;
      setText(name, strip.name);
      setText(before, strip.first ? `offsets from ${strip.first} on` : "");
      setText(lost, strip.lost.length ? `⚠ ${plural(strip.lost.length, "acknowledged record")} lost: ${strip.lost.map((record) => record.offset).sort((a, b) => a - b).join(", ")}` : "");
      keyed(section.lastChild, strip.replicas, (one) => one.broker, makeReplica, (row, one) => drawReplica(row, one, strip.first));
    });
  }
  return { node, draw };
}
