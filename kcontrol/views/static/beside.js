// The comparison with another run: both states side by side, differences marked, and the first record that differs. The
// differences are those of kcontrol/views/state_diff.py, which has the table of compared fields.

import { el, keyed, panel, setClass, setText, setTitle } from "./dom.js";
import { drawReplicas, nameOf, partitionsOf } from "./partitions.js";
import { FIELDS, TIMESTAMP } from "./tables.js";
import { keyOf, lastNotAbove, Timeline } from "./timeline.js";

const MOST = 60; // lines before the rest is counted

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

function standing({ nodes, controller }, broker) {
  if (!nodes[broker]) return "dead";
  return String(controller?.[0]) === broker ? `controller, epoch ${controller[1]}` : "alive";
}

// The value of a znode, without its timestamp.
const znode = ({ znodes }, path) => znodes[path] && [znodes[path][0].replace(new RegExp(TIMESTAMP, "g"), ""), ...znodes[path].slice(1)];

const union = (a, b) => [...new Set([...Object.keys(a), ...Object.keys(b)])];

// The lines of the comparison: key, name, both sides, and the fields that differ.
function linesOf(pair) {
  const brokers = union(...pair.map((s) => s.nodes)).sort((a, b) => a - b).map((broker) => {
    const sides = pair.map((state) => standing(state, broker));
    return { key: `b${broker}`, kind: "brokers", name: broker, shown: `broker ${broker}`, sides, differing: sides[0] === sides[1] ? [] : ["standing"] };
  });
  const partitions = [...new Map(pair.flatMap(partitionsOf).map((p) => [nameOf(p), p])).keys()].map((name) => {
    const sides = pair.map((state) => state.partitions[name]);
    const differing = FIELDS.filter((field) => !sides[0] || !sides[1] || !same(sides[0][field], sides[1][field]));
    return { key: `p${name}`, kind: "partitions", name, shown: name, sides, differing };
  });
  const paths = union(...pair.map((s) => s.znodes)).filter((path) => !same(...pair.map((s) => znode(s, path)))).sort();
  const znodes = paths.map((path) => ({ key: `z${path}`, kind: "znodes", name: path, shown: path, sides: pair.map((s) => s.znodes[path]), differing: ["text"] }));
  return [...brokers, ...partitions, ...znodes];
}

// Returns the differences as in Python: brokers with both states, partitions with the fields that differ, paths of znodes.
export function differences(one, other) {
  const lines = linesOf([one, other]).filter((line) => line.differing.length), of = (kind) => lines.filter((line) => line.kind === kind);
  return {
    brokers: Object.fromEntries(of("brokers").map((line) => [line.name, line.sides])),
    partitions: Object.fromEntries(of("partitions").map((line) => [line.name, line.differing])),
    znodes: of("znodes").map((line) => line.name),
  };
}

const timelines = new WeakMap();

function timelineOf(records) {
  if (!timelines.has(records)) timelines.set(records, new Timeline(records));
  return timelines.get(records);
}

// The record of the other run while this run is at `index`: the equal record, after the first difference the latest one at this time.
export function placeBeside(timeline, index, other, parted) {
  const last = other.length - 1;
  if (index >= timeline.length - 1) return last;
  if (parted < 0 || index < parted) return Math.min(index, last);
  const times = (other.times ??= other.records.map((record) => record.at_ms));
  return Math.max(parted - 1, Math.min(last, lastNotAbove(times, timeline.records[index].at_ms)));
}

// The record of the run of a scene that is shown beside.
export const indexBeside = (scene) => placeBeside(scene.timeline, scene.index, timelineOf(scene.other), scene.parted);

// ---------------------------------------------------------------- drawing

const WORDS = {
  leader: (p) => (p.leader === null ? "new" : p.leader === -1 ? "no leader" : `leader ${p.leader}`), isr: (p) => `ISR ${p.isr.join(" ")}`,
  leader_epoch: (p) => `leader epoch ${p.leader_epoch}`, controller_epoch: (p) => `ctrl. epoch ${p.controller_epoch}`, zk_version: (p) => `v${p.zk_version}`,
};

function wordsOf({ kind, differing }, side) {
  if (!side) return [["", "does not exist", true]];
  if (kind === "brokers") return [["", side, differing.length > 0]];
  if (kind === "znodes") return [["", `${side[0]} v${side[1]}`, false]];
  return (side.leader === null ? ["leader"] : Object.keys(WORDS)).map((field) => [field, WORDS[field](side), differing.includes(field)]);
}

function drawSide(cell, line, i, state) {
  drawReplicas(cell.firstChild, line.kind === "partitions" ? line.sides[i] : null, state.nodes);
  keyed(cell.lastChild, wordsOf(line, line.sides[i]), ([field]) => field, () => el("span"), (word, [, text, differs]) => {
    setText(word, text);
    setTitle(word, text);
    setClass(word, differs ? "kc-differs" : "");
  });
}

function makeLine() {
  const side = () => el("td", "", el("span"), el("span", "kc-sides"));
  return el("tr", "", el("td", "kc-sign"), el("td", "kc-mono kc-name"), side(), side());
}

// The paths of the values that differ between two records with one sentence, such as "do.version".
const paths = (a, b, path) => JSON.stringify(a) === JSON.stringify(b) ? [] : a && b && typeof a === "object" && typeof b === "object" ? Object.keys({ ...a, ...b }).flatMap((key) => paths(a[key], b[key], [...path, key])) : [path.join(".")];
export const unsaid = (a, b) => (a && a.say === b?.say ? ` The fields that differ: ${paths(a.fields, b.fields, []).join(", ") || "none, but the ids or causes do"}.` : "");
export function besidePanel(goTo, close, button) {
  const sentence = el("p", "kc-parted"), go = el("button", "kc-link"), heads = [0, 1].map(() => el("th", ""));
  go.type = "button";
  go.dataset.do = "to";
  const body = el("tbody"), table = el("table", "", el("thead", "", el("tr", "", el("th"), el("th"), ...heads)), body), more = el("p", "kc-dim");
  const node = panel("kc-beside", "Side by side", sentence, el("div", "kc-scroll", table, more));
  node.firstChild.append(button("click_compare", "×", "close the comparison", close));
  const [before, after] = [el("span"), el("span")];
  sentence.append(before, go, after);
  let target = 0;
  go.addEventListener("click", () => goTo(target));

  function showDifference(scene, other) {
    const at = scene.parted, names = [scene.branch || "this run", scene.otherName], records = [scene.timeline, other].map(({ records }) => records[at]);
    [target, go.hidden] = [Math.min(at, scene.timeline.length - 1), at < 0];
    setText(go, at < 0 ? "" : keyOf((records[0] ?? records[1]).id));
    setText(before, at < 0 ? "Both runs have equal records." : "The first difference is record ");
    setText(after, at < 0 ? "" : `. ${records.map((record, i) => `${names[i]}: ${record?.say ?? "It has ended."}`).join(" ")}${unsaid(...records)}`);
  }

  function draw(scene) {
    node.hidden = !scene.otherName;
    if (node.hidden) return;
    const other = timelineOf(scene.other), place = indexBeside(scene);
    const pair = [scene.state, other.at(place).state], lines = linesOf(pair);
    showDifference(scene, other);
    heads.forEach((head, i) => setText(head, `${[scene.branch || "this run", scene.otherName][i]} · record ${[scene.index, place][i] + 1} of ${[scene.timeline, other][i].length}`));
    keyed(body, lines.slice(0, MOST), (line) => line.key, makeLine, (row, line) => {
      const [sign, name, ...sides] = row.children;
      setClass(row, `kc-of-${line.kind}${line.differing.length ? " differs" : ""}`);
      setText(sign, line.differing.length ? "≠" : "");
      setTitle(sign, line.differing.length ? `differs: ${line.differing.join(", ")}` : "");
      setText(name, line.shown);
      setTitle(name, line.shown);
      sides.forEach((cell, i) => drawSide(cell, line, i, pair[i]));
    });
    setText(more, lines.length > MOST ? `and ${lines.length - MOST} more` : "");
  }
  return { node, draw };
}
