// Both state machines of the active controller, drawn from their tables: the number of subjects in each state, and the last transition.

import { el, panel, setClass, setText, setTitle, svg, titled } from "./dom.js";
import { MACHINES } from "./tables.js";
import { lastNotAbove } from "./timeline.js";

const WIDE = 108, HIGH = 38, ACROSS = 134, DOWN = 70, MARGIN = 6;

// Column and row of every state. Similar states of both machines have similar places.
const PLACE = {
  NonExistentPartition: [0, 0], NewPartition: [1, 0], OnlinePartition: [2, 0], OfflinePartition: [1, 1],
  NonExistentReplica: [0, 0], NewReplica: [1, 0], OnlineReplica: [2, 0], OfflineReplica: [1, 1],
  ReplicaDeletionSuccessful: [0, 2], ReplicaDeletionStarted: [1, 2], ReplicaDeletionIneligible: [2, 2],
};

export const shortState = (state) => state.replace("Partition", "").replace("Replica", "");

const cornerOf = (state) => PLACE[state].map((place, i) => MARGIN + place * [ACROSS, DOWN][i] + (i ? 12 : 0));

// The arrow from one state to another; two opposite arrows are drawn beside each other, each to the right of its direction.
function way(source, target, back) {
  const [a, b] = [source, target].map(cornerOf).map(([x, y]) => [x + WIDE / 2, y + HIGH / 2]);
  if (source === target) {
    const above = PLACE[source][1] === 0, side = a[0] + (above ? 0 : -WIDE / 2), y = a[1] - (above ? HIGH / 2 : 0);
    return above ? `M${side - 12},${y} c-4,-20 28,-20 24,-5` : `M${side},${y - 8} c-20,-4 -20,24 -5,18`;
  }
  const length = Math.hypot(b[0] - a[0], b[1] - a[1]), [dx, dy] = [(b[0] - a[0]) / length, (b[1] - a[1]) / length];
  const shift = back ? 7 : 0, [x, y] = [-dy * shift, dx * shift];
  // The distance between a box's middle and the point where the shifted line leaves it (`way` 1) or enters it (`way` -1).
  const out = (way) => Math.min(...[[dx, x, WIDE], [dy, y, HIGH]].map(([d, off, size]) => (d ? (size / 2 - way * Math.sign(d) * off) / Math.abs(d) : Infinity)));
  const [from, to] = [out(1) + 1, out(-1) + 6];
  return `M${a[0] + dx * from + x},${a[1] + dy * from + y} L${b[0] - dx * to + x},${b[1] - dy * to + y}`;
}

let pictures = 0;

function edgesOf({ rows }, head) {
  return new Map(rows.map(([source, target, note]) => {
    const back = rows.some((row) => row[0] === target && row[1] === source);
    const edge = svg("path", { d: way(source, target, back), "marker-end": `url(#${head})` });
    return [`${source}>${target}`, titled(edge, `${shortState(source)} to ${shortState(target)}: ${note}`)];
  }));
}

// A box with the state's name, in two lines if it has two words, and a place for the count.
function boxOf(state) {
  const [x, y] = cornerOf(state), words = shortState(state).replace(/(Non|Deletion)(?=[A-Z])/, "$1 ").split(" ");
  const lines = words.map((word, i) => {
    const line = svg("text", { x: x + 7, y: y + (words.length > 1 ? 16 + 14 * i : 24) });
    line.textContent = word;
    return line;
  });
  const count = svg("text", { x: x + WIDE - 7, y: y + 25, class: "kc-count" });
  return { box: svg("g", {}, svg("rect", { x, y, width: WIDE, height: HIGH, rx: 8 }), ...lines, count), count };
}

// `machine` is "partition" or "replica", as in the journal's records of transitions.
export function machinePanel(machine) {
  const head = `kc-head-${++pictures}`, table = MACHINES[machine], { states } = table;
  const marker = svg("marker", { id: head, viewBox: "0 0 6 6", refX: 1, refY: 3, markerWidth: 4.5, markerHeight: 4.5, orient: "auto" }, svg("path", { d: "M0,0 L6,3 L0,6 z" }));
  const height = 2 * MARGIN + 14 + HIGH + DOWN * Math.max(...states.map((state) => PLACE[state][1]));
  const picture = svg("svg", { viewBox: `0 0 ${2 * (MARGIN + ACROSS) + WIDE} ${height}`, class: "kc-machine", role: "img" }, svg("defs", {}, marker));
  const edges = edgesOf(table, head), boxes = new Map(states.map((state) => [state, boxOf(state)])), move = el("p", "kc-move");
  picture.append(...edges.values(), ...[...boxes.values()].map(({ box }) => box));
  const node = panel(`kc-machine-panel kc-of-${machine}s`, `${machine} machine`, picture, move);
  setTitle(node.firstChild, "the states in the controller's memory");

  function draw(scene) {
    const held = Object.values(scene.state.nodes[scene.controller]?.controller[`${machine}_states`] ?? {});
    const counts = Object.fromEntries(states.map((state) => [state, 0]));
    for (const state of held) counts[state]++;
    const at = scene.timeline.byId.get(scene.state.moves[machine]) ?? -1, now = at === scene.index, reign = scene.timeline.reigns[lastNotAbove(scene.timeline.reigns.map(({ from }) => from), scene.index)];
    const f = scene.state.nodes[scene.controller] && at > reign?.from ? scene.timeline.records[at].fields : null; // a controller's memory ends with its term
    for (const [state, { box, count }] of boxes) {
      setText(count, String(counts[state]));
      setClass(box, `${counts[state] ? "full" : ""}${f?.target === state ? (now ? " to now" : " to") : ""}`);
    }
    for (const [key, edge] of edges) setClass(edge, f && key === `${f.source}>${f.target}` ? `lit${now ? " now" : ""}` : "");
    setText(move, f ? `last transition: ${f.subject}, ${shortState(f.source)} → ${shortState(f.target)}` : scene.state.nodes[scene.controller] ? "no transition yet" : "no controller is alive");
    picture.setAttribute("aria-label", `${machine} machine: ${states.map((state) => `${counts[state]} ${shortState(state)}`).join(", ")}`);
  }
  return { node, draw };
}
