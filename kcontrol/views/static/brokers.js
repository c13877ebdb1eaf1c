// The brokers: who is controller, what their threads do now and what waits, whether ZooKeeper knows them; and the requests under way.

import { el, keyed, panel, plural, setClass, setText, setTitle } from "./dom.js";

const MOST = 4, IN_CHANNEL = 2; // chips in a queue or a channel before the rest is counted

// What is wrong with the session of a broker; nothing where the broker is alive and has one.
function sessionOf(broker, scene) {
  const own = Object.values(scene.seen.sessions).filter((session) => session.broker === broker);
  if (own.some((session) => session.held)) return "";
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

// The threads that have something to do, that of the controller's events first.
function threadsOf(node) {
  const busy = Object.keys({ ...node.queues, ...node.handling }).filter((thread) => node.handling[thread] || node.queues[thread]?.length);
  return busy.sort((a, b) => (b === "controller") - (a === "controller"));
}

// Chips of one thread: what it handles now, what waits behind it.
function chips(node, thread) {
  const now = node.handling[thread], waiting = node.queues[thread] ?? [];
  const shown = waiting.slice(0, MOST).map((event, i) => ({ key: `w${i}`, text: event.event, className: "kc-chip" }));
  if (waiting.length > MOST) shown.push({ key: "more", text: `+${waiting.length - MOST}`, className: "kc-chip kc-dim" });
  return now ? [{ key: "now", text: `▸ ${now.event}`, className: "kc-chip now" }, ...shown] : shown;
}

function drawThread(row, { node, thread }) {
  setTitle(row.firstChild, `${thread} thread`);
  keyed(row.lastChild, chips(node, thread), (chip) => chip.key, () => el("span"), (span, chip) => {
    setText(span, chip.text);
    setClass(span, chip.className);
    setTitle(span, chip.key === "now" ? `the ${thread} thread handles this` : "this waits in the queue");
  });
}

const makeThread = ({ thread }) => el("span", "kc-thread", el("span", "kc-label", thread), el("span", "kc-chips"));

function makeCard(broker) {
  const card = el("article", "kc-broker");
  const made = { crown: el("span", "kc-crown"), name: el("b", "", `broker ${broker}`), standing: el("span", "kc-standing"), threads: el("span", "kc-threads"), extra: el("span", "kc-extra"), session: el("span", "kc-session") };
  card.append(...Object.values(card.parts = made));
  return card;
}

// What else there is to know: what waits outside its threads, and whom it obeys where that is not the controller.
function extras(node, scene) {
  const obeys = node.broker.controller_id, epoch = scene.state.nodes[scene.crowned]?.controller.controller_epoch, found = [];
  if (node.notices.length) found.push(`✉ ${node.notices.length}`);
  const timers = Object.keys(node.timers).length, parked = Object.keys(node.parked).length;
  if (timers) found.push(plural(timers, "timer"));
  if (parked) found.push(`${plural(parked, "request")} parked`);
  if (obeys >= 0 && scene.crowned !== null && (obeys !== scene.crowned || (epoch && node.broker.controller_epoch < epoch))) {
    found.push(`obeys broker ${obeys}, epoch ${node.broker.controller_epoch}`);
  }
  return found.join(" · ");
}

function drawCard(card, broker, scene) {
  const node = scene.state.nodes[broker], { crown, text, deposed } = standing(broker, scene), parts = card.parts;
  const frozen = scene.seen.frozen[broker], threads = node ? threadsOf(node) : [];
  setClass(card, `kc-broker${node ? "" : " dead"}${frozen ? " frozen" : ""}${scene.acting === broker ? " acts" : ""}${scene.crowned === broker ? " rules" : ""}`);
  setTitle(card, node && node.broker.controller_id >= 0 ? `obeys broker ${node.broker.controller_id}, epoch ${node.broker.controller_epoch}` : "");
  setText(parts.crown, crown);
  setText(parts.standing, text);
  setClass(parts.standing, `kc-standing${deposed ? " deposed" : ""}`);
  keyed(parts.threads, threads.map((thread) => ({ node, thread })), (t) => t.thread, makeThread, drawThread);
  setTitle(parts.extra, node?.notices.length ? `${plural(node.notices.length, "watch event")} not delivered yet` : "");
  setText(parts.extra, node ? extras(node, scene) || (threads.length ? "" : "idle") : "");
  setText(parts.session, [frozen ? "frozen" : "", sessionOf(broker, scene)].filter(Boolean).join(", "));
}

// The controller comes first, on a line of its own.
export function brokersPanel() {
  const list = el("div", "kc-cards");
  const node = panel("kc-brokers", "Brokers", list);
  function draw(scene) {
    const brokers = [...scene.brokers].sort((a, b) => (b === scene.crowned) - (a === scene.crowned));
    keyed(list, brokers, String, makeCard, (card, broker) => drawCard(card, broker, scene));
  }
  return { node, draw };
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
    const shown = items.slice(0, IN_CHANNEL), rest = items.length - shown.length;
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
