// The brokers: who rules, what each thread does now, what waits, whether ZooKeeper knows them; and the requests under way.

import { el, keyed, panel, plural, setClass, setText, setTitle } from "./dom.js";

const MOST = 4; // chips in a queue before the rest is counted

function sessionOf(broker, scene) {
  const own = Object.values(scene.seen.sessions).filter((session) => session.broker === broker);
  if (own.some((session) => session.held)) return "session open";
  if (scene.state.nodes[broker]) return "session expired";
  return own.length ? "dead, its session lives on" : "dead";
}

function standing(broker, scene) {
  const node = scene.state.nodes[broker];
  const epoch = node?.controller.controller_epoch;
  const believes = node?.controller.active_controller_id === broker;
  if (scene.crowned === broker) return { crown: "♛", text: believes ? `controller, epoch ${epoch}` : "named controller" };
  if (believes) return { crown: "♕", text: `believes it is controller, epoch ${epoch}`, deposed: true };
  return { crown: "", text: "" };
}

const ALWAYS = ["controller", "zk-events", "requests"]; // threads that are shown though they are idle

// The threads of which the journal knows: those that are always of interest, and whichever of the others has something to do.
function threadsOf(node) {
  const known = Object.keys({ ...node.queues, ...node.handling }), busy = (thread) => node.handling[thread] || node.queues[thread]?.length;
  const rank = (thread) => (ALWAYS.includes(thread) ? ALWAYS.indexOf(thread) : ALWAYS.length);
  return known.filter((thread) => ALWAYS.includes(thread) || busy(thread)).sort((a, b) => rank(a) - rank(b));
}

// Chips of one thread: what it handles now, what waits behind it.
function chips(node, thread) {
  const now = node.handling[thread];
  const waiting = node.queues[thread] ?? [];
  const shown = waiting.slice(0, MOST).map((event, i) => ({ key: `w${i}`, text: event.event, className: "kc-chip" }));
  if (waiting.length > MOST) shown.push({ key: "more", text: `+${waiting.length - MOST}`, className: "kc-chip kc-dim" });
  const working = { key: "now", text: now ? `▸ ${now.event}` : "idle", className: now ? "kc-chip now" : "kc-idle" };
  return [working, ...shown];
}

function drawThread(row, { node, thread }) {
  setTitle(row.firstChild, `${thread} thread`);
  keyed(row.lastChild, chips(node, thread), (chip) => chip.key, () => el("span"), (span, chip) => {
    setText(span, chip.text);
    setClass(span, chip.className);
    setTitle(span, chip.key === "now" ? `the ${thread} thread handles this` : "this waits in the queue");
  });
}

function makeThread({ thread }) {
  return el("div", "kc-thread", el("span", "kc-label", thread), el("span", "kc-chips"));
}

function makeCard(broker) {
  const card = el("article", "kc-broker");
  card.parts = {
    crown: el("span", "kc-crown"), name: el("b", "", `broker ${broker}`), standing: el("span", "kc-standing"), session: el("span", "kc-session"),
    threads: el("div"), extra: el("div", "kc-extra"),
  };
  const { crown, name, standing, session, threads, extra } = card.parts;
  card.append(el("div", "kc-row", crown, name, session), standing, threads, extra);
  return card;
}

function extras(node) {
  const found = [];
  if (node.notices.length) found.push(`✉ ${plural(node.notices.length, "watch event")} to hear`);
  const timers = Object.keys(node.timers).length, parked = Object.keys(node.parked).length;
  if (timers) found.push(plural(timers, "timer"));
  if (parked) found.push(`${plural(parked, "request")} parked`);
  if (!found.length && node.broker.controller_id >= 0) found.push(`obeys broker ${node.broker.controller_id}, epoch ${node.broker.controller_epoch}`);
  return found.join(" · ");
}

function drawCard(card, broker, scene) {
  const node = scene.state.nodes[broker], { crown, text, deposed } = standing(broker, scene), parts = card.parts;
  const frozen = scene.seen.frozen[broker];
  setClass(card, `kc-broker${node ? "" : " dead"}${frozen ? " frozen" : ""}${scene.acting === broker ? " acts" : ""}${scene.crowned === broker ? " rules" : ""}`);
  setText(parts.crown, crown);
  setText(parts.standing, text);
  setClass(parts.standing, `kc-standing${deposed ? " deposed" : ""}`);
  parts.standing.hidden = !text;
  setText(parts.session, frozen ? `frozen, ${sessionOf(broker, scene)}` : sessionOf(broker, scene));
  const threads = node ? threadsOf(node) : [];
  keyed(parts.threads, threads.map((thread) => ({ node, thread })), (t) => t.thread, makeThread, drawThread);
  setText(parts.extra, node ? extras(node) : "");
}

export function brokersPanel() {
  const list = el("div");
  const node = panel("kc-brokers", "Brokers", list);
  return {
    node,
    draw: (scene) => keyed(list, scene.brokers, String, makeCard, (card, broker) => drawCard(card, broker, scene)),
  };
}

// ---------------------------------------------------------------- requests under way

const byNumber = new Intl.Collator("en", { numeric: true }).compare;

// A line for each channel: what its receiver has taken and not answered, and what waits behind it. A channel has one in flight.
function channels(scene) {
  return Object.entries(scene.state.channels).map(([pair, parcels]) => {
    const [sender, receiver] = pair.split(">"), taken = scene.seen.taken[pair] ? 1 : 0, gone = !scene.state.nodes[receiver];
    const items = parcels.map(([id, api], i) => ({ id, api, key: `${id} ${api} ${i}` }));
    const what = `broker ${sender} to broker ${receiver}${gone ? ", who is not there to hear it" : ""}`;
    return { key: pair, label: `${sender} → ${receiver}`, flies: items.slice(0, taken), waits: items.slice(taken), gone, what };
  });
}

// What brokers ask the controller, which is under way until it is answered.
function questions(scene) {
  return Object.entries(scene.state.questions).map(([broker, asked]) => {
    const waits = asked.map(({ record, api }, i) => ({ id: record, api, key: `${record} ${i}` }));
    return { key: `?${broker}`, label: `${broker} → ♛`, flies: [], waits, gone: false, what: `broker ${broker} asks the controller` };
  });
}

export function channelsPanel(goTo) {
  const list = el("div"), none = el("p", "kc-dim", "none");
  const head = el("div", "kc-channel kc-dim", el("span", "", "from → to"), el("span", "", "in flight"), el("span", "", "waits"));
  const node = panel("kc-channels", "Requests under way", head, list, none);
  let scene = null;

  function makeChip({ id, api }) {
    const chip = el("button", "", api);
    chip.type = "button";
    chip.dataset.do = "to";
    chip.addEventListener("click", () => goTo(scene.timeline.byId.get(id)));
    return chip;
  }

  function fill(cell, items, className, words) {
    const shown = items.slice(0, MOST), rest = items.length - shown.length;
    keyed(cell.firstChild, shown, (item) => item.key, makeChip, (chip, { id }) => {
      setClass(chip, `kc-chip ${className}`);
      setTitle(chip, `${words}: ${scene.timeline.records[scene.timeline.byId.get(id)].say}`);
    });
    setText(cell.lastChild, rest ? `+${rest}` : "");
  }

  const makeLine = () => el("div", "", el("span", "kc-label"), ...[1, 2].map(() => el("span", "kc-chips", el("span", "kc-chips"), el("span", "kc-dim"))));

  function draw(next) {
    scene = next;
    const lines = [...channels(scene), ...questions(scene)].sort((a, b) => byNumber(a.key, b.key));
    none.hidden = lines.length > 0;
    head.hidden = !none.hidden;
    keyed(list, lines, (line) => line.key, makeLine, (node, line) => {
      const [label, flies, waits] = node.children;
      setText(label, line.label);
      setTitle(label, line.what);
      setClass(node, `kc-channel${line.gone ? " dead" : ""}`);
      fill(flies, line.flies, "now", `${line.what}: taken, not answered yet`);
      fill(waits, line.waits, "", `${line.what}: waits`);
    });
  }
  return { node, draw };
}
