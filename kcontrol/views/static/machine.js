// The partition state machine of whoever rules: how many partitions are in each state, and the last move.

import { panel, setClass, setText, svg, titled, el } from "./dom.js";
import { MEANINGS } from "./meanings.js";

const WIDE = 118, HIGH = 40;
const PLACE = { NonExistentPartition: [10, 16], NewPartition: [190, 16], OnlinePartition: [190, 104], OfflinePartition: [10, 104] };

export const shortState = (state) => state.replace("Partition", "").replace("Replica", "");

// The way from one state to another; where there is one back, each is drawn to the right of its direction.
function way(source, target, back) {
  const [a, b] = [PLACE[source], PLACE[target]].map(([x, y]) => [x + WIDE / 2, y + HIGH / 2]);
  if (source === target) {
    const below = a[1] > 80 ? 1 : -1, y = a[1] + (below * HIGH) / 2;
    return `M${a[0] - 14},${y} c-6,${below * 24} 34,${below * 24} 28,${below * 7}`;
  }
  const length = Math.hypot(b[0] - a[0], b[1] - a[1]), [dx, dy] = [(b[0] - a[0]) / length, (b[1] - a[1]) / length];
  const edge = Math.min(dx ? WIDE / 2 / Math.abs(dx) : Infinity, dy ? HIGH / 2 / Math.abs(dy) : Infinity) + 1, shift = back ? 8 : 0;
  const [x, y] = [-dy * shift, dx * shift];
  return `M${a[0] + dx * edge + x},${a[1] + dy * edge + y} L${b[0] - dx * (edge + 5) + x},${b[1] - dy * (edge + 5) + y}`;
}

let pictures = 0;

export function machinePanel() {
  const head = `kc-head-${++pictures}`, { rows, states } = MEANINGS.machines.partition;
  const marker = svg("marker", { id: head, viewBox: "0 0 6 6", refX: 1, refY: 3, markerWidth: 4.5, markerHeight: 4.5, orient: "auto" }, svg("path", { d: "M0,0 L6,3 L0,6 z" }));
  const picture = svg("svg", { viewBox: "0 0 318 174", class: "kc-machine", role: "img" }, svg("defs", {}, marker));
  const edges = new Map(), boxes = new Map(), move = el("p", "kc-move");
  for (const [source, target, note] of rows) {
    const back = rows.some((row) => row[0] === target && row[1] === source);
    const edge = titled(svg("path", { d: way(source, target, back), "marker-end": `url(#${head})` }), `${shortState(source)} to ${shortState(target)}: ${note}`);
    edges.set(`${source}>${target}`, edge);
    picture.append(edge);
  }
  for (const state of states) {
    const [x, y] = PLACE[state], name = svg("text", { x: x + 12, y: y + 25 }), count = svg("text", { x: x + WIDE - 12, y: y + 26, class: "kc-count" });
    name.textContent = shortState(state);
    boxes.set(state, { box: svg("g", {}, svg("rect", { x, y, width: WIDE, height: HIGH, rx: 8 }), name, count), count });
    picture.append(boxes.get(state).box);
  }
  const node = panel("kc-machine-panel", "Partition machine of the controller", picture, move);

  function draw(scene) {
    const held = Object.values(scene.state.nodes[scene.crowned]?.controller.partition_states ?? {});
    const counts = Object.fromEntries(states.map((state) => [state, 0]));
    for (const state of held) counts[state]++;
    const last = scene.timeline.records[scene.seen.moveAt], f = last?.fields, now = scene.seen.moveAt === scene.index;
    for (const [state, { box, count }] of boxes) {
      setText(count, String(counts[state]));
      setClass(box, `${counts[state] ? "full" : ""}${f?.target === state ? (now ? " to now" : " to") : ""}`);
    }
    for (const [key, edge] of edges) setClass(edge, f && key === `${f.source}>${f.target}` ? `lit${now ? " now" : ""}` : "");
    setText(move, f ? `last move: ${f.subject}, ${shortState(f.source)} → ${shortState(f.target)}` : "nothing has moved yet");
    picture.setAttribute("aria-label", `partition machine: ${states.map((state) => `${counts[state]} ${shortState(state)}`).join(", ")}`);
  }
  return { node, draw };
}
