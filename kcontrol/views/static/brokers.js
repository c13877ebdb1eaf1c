// The brokers: the controller, the event of each thread, the waiting events, the sessions; and the requests in channels.

import { el, keyed, panel, plural, setClass, setText, setTitle } from "./dom.js";

const MOST = 4, IN_CHANNEL = 2; // chips in a queue or a channel before the rest is counted

// The problem with a broker's session; "" for a running broker with a session, or of a run that says nothing about sessions.
function sessionOf(broker, scene) {
  const own = Object.values(scene.state.sessions).filter(([owner]) => owner === broker);
  if (own.some(([, lives]) => lives) || (scene.state.nodes[broker] && ["recorded group", "logs"].includes(scene.world))) return "";
  if (scene.state.nodes[broker]) return "session expired";
  return own.length ? "dead, its session lives on" : "dead";
}

function standing(broker, scene) {
  const node = scene.state.nodes[broker];
  const epoch = node?.controller.controller_epoch;
  const believes = node?.controller.active_controller_id === broker;
  if (scene.controller === broker) return { crown: "♛", text: believes ? `controller, epoch ${epoch}` : "named in /controller" };
  if (believes) return { crown: "♕", text: `believes it is controller, epoch ${epoch}`, deposed: true };
  return { crown: "", text: "" };
}

// The threads with an event, the controller's event thread first.
function threadsOf(node) {
  const busy = Object.keys({ ...node.queues, ...node.handling }).filter((thread) => node.handling[thread] || node.queues[thread]?.length);
  return busy.sort((a, b) => (b === "controller") - (a === "controller"));
}

// The chips of one thread: the event in its handler, and the events in its queue.
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

// Further facts: requests and notifications that wait for the broker, and its controller if it is not the one in ZooKeeper.
function extras(node, scene) {
  const obeys = node.broker.controller_id, epoch = scene.state.nodes[scene.controller]?.controller.controller_epoch, found = [];
  if (node.notifications.length) found.push(`✉ ${node.notifications.length}`);
  const timers = Object.keys(node.timers).length, parked = Object.keys(node.parked).length;
  if (timers) found.push(plural(timers, "timer"));
  if (parked) found.push(`${plural(parked, "request")} parked`);
  if (obeys >= 0 && scene.controller !== null && (obeys !== scene.controller || (epoch && node.broker.controller_epoch < epoch))) {
    found.push(`knows controller ${obeys}, epoch ${node.broker.controller_epoch}`);
  }
  return found.join(" · ");
}

function drawCard(card, broker, scene) {
  const node = scene.state.nodes[broker], { crown, text, deposed } = standing(broker, scene), parts = card.parts;
  const frozen = node?.frozen, threads = node ? threadsOf(node) : [];
  setClass(card, `kc-broker${node ? "" : " dead"}${frozen ? " frozen" : ""}${scene.acting === broker ? " acts" : ""}${scene.controller === broker ? " rules" : ""}`);
  setTitle(card, node && node.broker.controller_id >= 0 ? `knows controller ${node.broker.controller_id}, epoch ${node.broker.controller_epoch}` : "");
  setText(parts.crown, crown);
  setText(parts.standing, text);
  setClass(parts.standing, `kc-standing${deposed ? " deposed" : ""}`);
  keyed(parts.threads, threads.map((thread) => ({ node, thread })), (t) => t.thread, makeThread, drawThread);
  setTitle(parts.extra, node?.notifications.length ? `${plural(node.notifications.length, "watch event")} not delivered yet` : "");
  setText(parts.extra, node ? extras(node, scene) || (threads.length ? "" : "idle") : "");
  setText(parts.session, [frozen ? "frozen" : "", sessionOf(broker, scene)].filter(Boolean).join(", "));
}

// The controller comes first, on a line of its own.
export function brokersPanel() {
  const list = el("div", "kc-cards");
  const node = panel("kc-brokers", "Brokers", list);
  function draw(scene) {
    const brokers = [...scene.brokers].sort((a, b) => (b === scene.controller) - (a === scene.controller));
    keyed(list, brokers, String, makeCard, (card, broker) => drawCard(card, broker, scene));
  }
  return { node, draw };
}

// ---------------------------------------------------------------- requests under way

const byNumber = new Intl.Collator("en", { numeric: true }).compare;

// A line for each channel: the request that its receiver is handling, of which there is at most one, and the requests behind it.
function channels(scene) {
  return Object.entries(scene.state.channels).map(([pair, parcels]) => {
    const [sender, receiver] = pair.split(">"), taken = scene.state.taken[pair] ? 1 : 0, gone = !scene.state.nodes[receiver];
    const items = parcels.map(([id, api], i) => ({ id, api, key: `${id} ${api} ${i}` }));
    const what = `broker ${sender} to broker ${receiver}${gone ? ", which does not run" : ""}`;
    return { key: pair, label: `${sender} → ${receiver}`, flies: items.slice(0, taken), waits: items.slice(taken), gone, what };
  });
}

// The requests of brokers to the controller, until the response arrives.
function questions(scene) {
  return Object.entries(scene.state.to_controller).map(([broker, asked]) => {
    const waits = asked.map(({ record, api }, i) => ({ id: record, api, key: `${record} ${i}` }));
    return { key: `?${broker}`, label: `${broker} → ♛`, flies: [], waits, gone: false, what: `broker ${broker} to the controller` };
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
      fill(flies, line.flies, "now", `${line.what}: received, no response yet`);
      fill(waits, line.waits, "", `${line.what}: waits`);
    });
  }
  return { node, draw };
}
