// The space-time diagram: a lane for ZooKeeper and for each broker, time from left to right, one column per record.
// Every record is drawn once, in its column; a step only moves the strip and switches classes.

import { keyed, el, panel, setClass, svg, titled } from "./dom.js";
import { brokerOf, lastNotAbove } from "./timeline.js";

const STEP = 16, LEFT = 96, LANE = 27, TOP = 17;

const SHAPES = {
  dot: "M-3.2,0 a3.2,3.2 0 1,0 6.4,0 a3.2,3.2 0 1,0 -6.4,0",
  ring: "M-3,0 a3,3 0 1,0 6,0 a3,3 0 1,0 -6,0",
  square: "M-3.6,-3.6 h7.2 v7.2 h-7.2 z",
  diamond: "M0,-5.5 L5.5,0 L0,5.5 L-5.5,0 z",
  cross: "M-4.5,-4.5 L4.5,4.5 M-4.5,4.5 L4.5,-4.5",
  up: "M0,-5 L5,4 L-5,4 z",
  pause: "M-3,-5 v10 M3,-5 v10",
};

const LOOKS = { // kind: shape, colour
  start: ["up", "green"], thaw: ["up", "green"], stop: ["cross", "red"], freeze: ["pause", "red"], session_lost: ["cross", "red"],
  act: ["diamond", "pink"], drop_request: ["diamond", "pink"], duplicate_request: ["diamond", "pink"], fire_timer: ["diamond", "amber"],
  close: ["cross", "red"], write: ["dot", "blue"], change: ["square", "amber"], send: ["dot", "sky"], receive: ["dot", "sky"],
  submit: ["dot", "sky"], notify: ["ring", "ink"], enqueue: ["ring", "ink"], begin: ["ring", "ink"], drop_notification: ["cross", "pink"],
  log_append: ["ring", "sky"], log_truncate: ["cross", "red"], record_lost: ["cross", "red"], tail_lost: ["cross", "red"],
  log_delete: ["cross", "pink"],
  failed_change: ["cross", "pink"], conflict: ["cross", "pink"], exception: ["cross", "pink"], handler_error: ["cross", "red"],
  preempt: ["cross", "pink"],
};

const ON_ZOOKEEPER = new Set(["run", "act", "close", "notify", "write"]);

const ZOOKEEPER = -1; // the lane above those of the brokers

// The lane of a record: that of its broker; for a record of no broker, that of the broker in its fields.
// A consumer has no lane: its record is drawn at the coordinator that it sends to or gets a response from.
function laneOf(record) {
  const f = record.fields, maker = brokerOf(record);
  if (maker !== null) return maker;
  if (record.kind === "consumer") return f.now.asked?.[0] ?? record.cause?.[0] ?? ZOOKEEPER;
  if (ON_ZOOKEEPER.has(record.kind)) return ZOOKEEPER;
  return f.broker ?? f.sender ?? f.leader ?? (f.channel ? +f.channel.split(">")[0] : ZOOKEEPER);
}

const writes = (record) => brokerOf(record) !== null && (record.kind === "write" || (record.kind === "change" && record.fields.write));

// A line with an open head at its end.
function arrow(x1, y1, x2, y2, size = 4.5) {
  const angle = Math.atan2(y2 - y1, x2 - x1), wing = (turn) => `${x2 - size * Math.cos(angle + turn)},${y2 - size * Math.sin(angle + turn)}`;
  return `M${x1},${y1} L${x2},${y2} M${wing(0.5)} L${x2},${y2} L${wing(-0.5)}`;
}

const LEGEND = [
  ["dot", "blue", "write"], ["square", "amber", "decision"], ["dot", "sky", "request"], ["ring", "ink", "notification"],
  ["up", "green", "start"], ["cross", "red", "death or loss"], ["diamond", "pink", "action"],
];
const RARE = [ // part of the legend only in a run with such a record
  ["cross", "pink", "refused, dropped or deleted"], ["ring", "sky", "records appended"], ["pause", "red", "freeze"], ["diamond", "amber", "timer"],
];

const lookOf = (record) => LOOKS[record.kind] ?? ["dot", "faint"];

function legend(looks) {
  const line = el("p", "kc-legend");
  for (const [shape, colour, text] of [...LEGEND, ...RARE.filter((look) => looks.has(`${look[0]} ${look[1]}`))]) {
    const mark = svg("svg", { viewBox: "-7 -7 14 14", width: 14, height: 14, "aria-hidden": "true" }, svg("path", { d: SHAPES[shape], class: `kc-mark ${shape} ${colour}` }));
    line.append(el("span", "kc-entry", mark, text));
  }
  return line;
}

export function spaceTimePanel(goTo) {
  const names = svg("g"), lanes = svg("g"), links = svg("g"), dots = svg("g"), cursor = svg("rect", { class: "kc-cursor", width: STEP, rx: 3, y: 1 });
  const strip = svg("g", { class: "kc-strip" }, cursor, lanes, links, dots), frame = svg("svg", { x: LEFT }, strip);
  const picture = svg("svg", { class: "kc-spacetime", role: "img", "aria-label": "space-time diagram of notifications and requests" }, names, frame);
  const node = panel("kc-time", "Notifications and requests", picture, legend(new Set()));
  let first = 0, width = 1000, columns = null, laneKey = "", scene = null, cut = "";

  const y = (lane) => TOP + LANE * (scene.brokers.indexOf(lane) + 1);
  const column = (index) => lastNotAbove(columns, index);
  const x = (index) => column(index) * STEP + STEP / 2;

  new ResizeObserver(([entry]) => {
    const wide = Math.round(entry.contentRect.width);
    if (!wide || wide === width) return;
    width = wide;
    cut = "";
    if (scene) draw(scene);
  }).observe(picture);

  // Draws everything again if lanes or columns have changed, sizes the picture, and keeps the present record visible.
  function lay() {
    const key = scene.brokers.join();
    if (key !== laneKey || columns !== scene.columns) {
      for (const group of [names, lanes, links, dots]) {
        group.replaceChildren();
        group.keyed?.clear();
      }
      [laneKey, columns, cut] = [key, scene.columns, ""];
      node.lastChild.replaceWith(legend(new Set(columns.map((index) => lookOf(scene.timeline.records[index]).join(" ")))));
      [ZOOKEEPER, ...scene.brokers].forEach((lane) => {
        const text = svg("text", { x: 0, y: y(lane) + 4 });
        text.textContent = lane === ZOOKEEPER ? "ZooKeeper" : `broker ${lane}`;
        names.append(text);
      });
    }
    const height = TOP * 2 + LANE * scene.brokers.length, count = Math.max(8, Math.floor((width - LEFT) / STEP)), here = Math.max(0, column(scene.index));
    if (here < first + 2 || here > first + count * 0.82) first = Math.max(0, Math.min(here - Math.floor(count * 0.6), columns.length - count + 6));
    if (cut !== `${width} ${height}`) {
      for (const [name, value] of [["width", "100%"], ["height", height], ["viewBox", `0 0 ${width} ${height}`]]) picture.setAttribute(name, value);
      frame.setAttribute("width", Math.max(0, width - LEFT));
      frame.setAttribute("height", height);
      cursor.setAttribute("height", height - 2);
      cut = `${width} ${height}`;
    }
    cursor.setAttribute("x", here * STEP);
    strip.style.transform = `translateX(${-first * STEP}px)`;
    return [first, first + count];
  }

  const later = (index) => (index > scene.index ? " later" : "");

  function drawLanes(from, to) {
    const end = (stretch) => (stretch.to === null ? to + 1 : column(stretch.to));
    const seen = (stretch) => column(stretch.from) <= to && end(stretch) >= from;
    const items = [{ key: "zk", lane: ZOOKEEPER, x1: from, x2: to + 1, className: "kc-life" }];
    for (const s of scene.timeline.reigns.filter(seen)) items.push({ key: `r${s.from}`, lane: s.broker, x1: column(s.from), x2: end(s), className: "kc-reign" });
    for (const s of scene.timeline.lives.filter(seen)) items.push({ key: `l${s.from}`, lane: s.broker, x1: column(s.from), x2: end(s), className: s.frozen ? "kc-life frozen" : "kc-life" });
    keyed(lanes, items.filter((item) => item.lane === ZOOKEEPER || scene.brokers.includes(item.lane)), (item) => item.key, () => svg("line"), (line, item) => {
      const left = Math.max(item.x1, from - 2) * STEP + STEP / 2, right = Math.min(item.x2, to + 1) * STEP + STEP / 2;
      line.setAttribute("x1", left);
      line.setAttribute("x2", right);
      line.setAttribute("y1", y(item.lane));
      line.setAttribute("y2", y(item.lane));
      setClass(line, item.className);
    });
  }

  function makeDot(index) {
    const record = scene.timeline.records[index], lane = laneOf(record), [shape, colour] = lookOf(record);
    const group = svg("g", { class: "kc-dot" }), at = x(index);
    if (writes(record)) {
      const failed = record.fields.error ? " failed" : "";
      group.append(svg("path", { d: arrow(at, y(lane), at, y(ZOOKEEPER) + 4), class: `kc-arrow ${colour === "amber" ? "blue" : colour}${failed}` }));
    }
    const mark = svg("path", { d: SHAPES[shape], class: `kc-mark ${shape} ${colour}`, transform: `translate(${at} ${y(lane)})` });
    const hit = svg("rect", { class: "kc-hit", x: at - STEP / 2, y: y(lane) - LANE / 2, width: STEP, height: LANE });
    group.append(mark, hit);
    group.addEventListener("click", () => goTo(index));
    return titled(group, record.say);
  }

  function drawDots(from, to) {
    const indices = columns.slice(Math.max(0, from - 1), to + 2);
    keyed(dots, indices, String, makeDot, (dot, index) => {
      setClass(dot, `kc-dot${later(index)}${index === scene.index ? " here" : ""}${scene.why.has(index) ? " why" : ""}`);
    });
    return indices;
  }

  function linksOf(indices) {
    const { links: out, from } = scene.timeline, found = new Map();
    for (const index of indices) {
      for (const target of out.get(index) ?? []) found.set(`${index}>${target}`, [index, target]);
      if (from.has(index)) found.set(`${from.get(index)}>${index}`, [from.get(index), index]);
    }
    return [...found].map(([key, [source, target]]) => ({ key, source, target }));
  }

  function makeLink({ source, target }) {
    const [a, b] = [scene.timeline.records[source], scene.timeline.records[target]];
    const look = a.kind === "notify" ? "kc-notice" : "kc-request";
    const link = svg("path", { d: arrow(x(source), y(laneOf(a)), x(target), y(laneOf(b)) + (laneOf(b) === laneOf(a) ? 0 : y(laneOf(b)) > y(laneOf(a)) ? -4 : 4)) });
    link.look = look;
    return link;
  }

  function drawLinks(indices) {
    keyed(links, linksOf(indices), (link) => link.key, makeLink, (path, { source, target }) => {
      const flying = source <= scene.index && target > scene.index ? " flying" : "";
      setClass(path, `kc-arrow ${path.look}${later(source)}${flying}`);
    });
  }

  function draw(next) {
    scene = next;
    const [from, to] = lay();
    drawLanes(from, to);
    drawLinks(drawDots(from, to));
  }
  return { node, draw };
}
