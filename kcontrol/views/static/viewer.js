// The viewer of a journal. Python sends each record once, with its changes of the state; the changes are applied here, so navigation
// needs no kernel. Traits and messages are described in kcontrol/views/viewer.py.

import { brokersPanel, channelsPanel } from "./brokers.js";
import { besidePanel, differences, placeBeside, unsaid } from "./beside.js";
import { actionBar, branchBar, errorBar, sentenceBar, trackBar, walkBar } from "./controls.js";
import { button, el } from "./dom.js";
import { groupsPanel } from "./groups.js";
import { journalPanel, whyPanel } from "./journal.js";
import { machinePanel } from "./machine.js";
import { MACHINES } from "./tables.js";
import { partitionsOf, partitionsPanel } from "./partitions.js";
import { replicasPanel, squares, strips } from "./replicas.js";
import { spaceTimePanel } from "./spacetime.js";
import { brokerOf, keyOf, lastNotAbove, Timeline } from "./timeline.js";
import { znodesPanel } from "./znodes.js";

const timelines = new WeakMap(); // the model's array of records -> its timeline, shared by all views of the model

export function timelineOf(model) {
  const records = model.get("records");
  if (!timelines.has(records)) {
    const timeline = new Timeline(records);
    timeline.place = model.get("at") ?? Infinity;
    timelines.set(records, timeline);
  }
  return timelines.get(records);
}

// Runs once for each model: adds the records that Python sends, and requests missing records.
function initialize({ model }) {
  const missing = () => {
    const timeline = timelineOf(model);
    if (timeline.length < model.get("count")) model.send({ do: "records", from: timeline.length });
  };
  const receive = (message) => {
    if (message?.append && !timelineOf(model).append(message.append, message.from)) missing();
  };
  model.on("msg:custom", receive);
  model.on("change:at", () => timelineOf(model).show(model.get("at")));
  missing();
}

// The values for the panels at one position.
export function sceneAt(model, timeline, index, shared) {
  const seen = timeline.at(Math.min(index, timeline.length - 1)), { state } = seen, record = timeline.records[index];
  const brokers = new Set([...(model.get("brokers") ?? []), ...timeline.lives.map((life) => life.broker)]);
  const asked = model.get("asked")?.length ? timeline.byId.get(keyOf(model.get("asked"))) : undefined;
  const chain = asked === undefined ? [] : timeline.why(asked), actions = model.get("actions") ?? [];
  const rests = index === timeline.length - 1 && record?.weight < 2 && !actions.some((action) => action[2] === "routine");
  const litNow = seen.litAt === index, lit = new Set(seen.lit);
  const f = record?.fields;
  return {
    ...shared, timeline, index, state, seen, record, chain, why: new Set(chain),
    brokers: [...brokers].sort((a, b) => a - b),
    controller: state.controller?.[0] ?? null,
    acting: record && (brokerOf(record) ?? f.broker ?? f.to ?? null),
    partitions: partitionsOf(state),
    lit: (path) => (lit.has(path) ? (litNow ? "lit now" : "lit") : ""),
    details: model.get("details"),
    columns: model.get("details") ? timeline.all : timeline.shown,
    title: model.get("title"), release: model.get("release"), world: model.get("world"), clock: model.get("clock"),
    rests, headline: rests ? timeline.decisions.at(-1) ?? index : index, // at rest, the last decision
    branches: model.get("branches") ?? [], branch: model.get("branch") ?? "",
    other: model.get("other") ?? [], otherName: model.get("other_name") ?? "", parted: model.get("parted") ?? -1,
    strips: model.get("strips") ?? [], otherStrips: model.get("other_strips") ?? [],
    actions, live: model.get("live"), held: model.get("held") ?? "", error: model.get("error") ?? "",
  };
}

class View {
  constructor(model, host) {
    [this.model, this.host] = [model, host];
    this.asked = model.get("done") ?? 0; // the number of the last message to Python
    this.setting = false;
    this.changed = () => this.setting || this.draw();
    this.renewed = () => this.#build();
    this.#build();
    model.on("change", this.changed); // once for all changes of one message
    model.on("change:records", this.renewed);
  }

  close() {
    this.sendShown();
    this.model.off("change", this.changed);
    this.model.off("change:records", this.renewed);
    this.timeline.listeners.delete(this.changed);
  }

  #build() {
    this.timeline?.listeners.delete(this.changed);
    this.timeline = timelineOf(this.model);
    this.timeline.listeners.add(this.changed);
    const go = { to: (i) => this.to(i), soon: (i) => this.soon(i), by: (d) => this.by(d), fault: (d) => this.fault(d) };
    const branching = {
      switchTo: (name) => this.wish("switch", { name }), compare: (name) => this.compare(name),
      branch: (name) => this.wish("branch", { name, at: this.index }),
    };
    const bars = [walkBar(go), trackBar(go), errorBar(), branchBar(branching), actionBar((action) => this.wish("step", action ? { action } : {}), () => this.wish("run")), sentenceBar((i) => this.why(i), (i) => this.to(i))];
    const [brokers, partitions, znodes] = [brokersPanel(), partitionsPanel(), znodesPanel()];
    const replicas = replicasPanel(), time = spaceTimePanel((i) => this.to(i));
    const journal = journalPanel((i) => this.why(i, true), (on) => this.set({ details: on }));
    const [why, channels] = [whyPanel((i) => this.to(i), () => this.why(null), (at) => this.wish("without", { at })), channelsPanel((i) => this.to(i))];
    const beside = besidePanel((i) => this.to(i), () => this.compare(""), button);
    const machines = ["partition", "replica"].map(machinePanel), groups = groupsPanel();
    this.panels = [...bars, groups, brokers, partitions, znodes, replicas, time, journal, why, ...machines, channels, beside, { draw: (scene) => { low.hidden = scene.world === "recorded group"; } }];
    const middle = el("div", "kc-middle", partitions.node, channels.node), words = el("div", "kc-words", journal.node, why.node);
    const low = el("div", "kc-low", znodes.node, el("div", "kc-machines", ...machines.map((machine) => machine.node)));
    const grid = el("div", "kc-grid", brokers.node, words, middle, replicas.node, time.node, low);
    const inside = el("div", "kc-inside", ...bars.map((bar) => bar.node), beside.node, groups.node, grid);
    this.root = el("div", "kc", inside);
    this.root.tabIndex = 0;
    this.root.setAttribute("role", "group");
    this.root.setAttribute("aria-label", "viewer of a cluster's journal; arrow keys go through it");
    this.root.addEventListener("keydown", (event) => this.#key(event));
    this.host.replaceChildren(this.root);
    this.draw();
    // JupyterLab removes outputs that are far away and inserts them later, which resets their scroll positions.
    new ResizeObserver(([entry]) => entry.contentRect.width && this.settle(true)).observe(this.root);
  }

  get index() {
    return Math.max(0, Math.min(this.timeline.place, this.timeline.length - 1));
  }

  // Draws the present position. An error is shown in the panel, and the controls stay usable.
  draw() {
    this.root.dataset.at = this.index;
    const waits = this.asked > (this.model.get("done") ?? 0) ? "waiting for the kernel …" : "";
    const shared = { busy: this.model.get("busy") ? "working …" : waits };
    try {
      const scene = sceneAt(this.model, this.timeline, this.index, shared);
      for (const part of this.panels) part.draw(scene);
      this.shown = true;
      this.settle();
      if (!waits && this.comparing) this.comparing.scrollIntoView({ block: "nearest" });
      if (!waits) this.comparing = null;
    } catch (problem) {
      this.shown = false;
      console.error(problem);
      this.panels[2].draw({ error: `Record ${this.index + 1} cannot be shown: ${problem.message}.` });
    }
  }

  // Measurements come after all changes of the page.
  settle(again = false) {
    if (!this.shown) return;
    for (const part of this.panels) part.settle?.(again);
  }

  // ---------------------------------------------------------------- the Python methods of these names

  set(values) {
    this.setting = true;
    for (const [name, value] of Object.entries(values)) this.model.set(name, value);
    if ("at" in values) this.timeline.show(values.at);
    this.setting = false;
    this.draw();
    this.sending ??= setTimeout(() => this.sendShown(), 100);
  }

  // Sends the position to Python as a message: saved traits would be echoed, perhaps after Python has changed the position.
  sendShown() {
    if (this.sending === undefined) return;
    clearTimeout(this.sending);
    this.sending = undefined;
    const [at, asked, details] = ["at", "asked", "details"].map((name) => this.model.get(name));
    this.#send({ do: "show", at, asked, details });
  }

  // Without a kernel the message has no effect; the journal can still be read.
  #send(message) {
    try {
      this.model.send(message);
    } catch (problem) {
      console.warn(problem);
    }
  }

  to(index) {
    this.set({ at: Math.max(0, Math.min(index, this.timeline.length - 1)) });
  }

  // Like `to`, but once per frame, because a dragged slider sends more positions than can be drawn.
  soon(index) {
    this.wanted = index;
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      this.to(this.wanted);
    });
  }

  by(direction) {
    this.to(this.#beside(this.model.get("details") ? this.timeline.all : this.timeline.shown, direction));
  }

  fault(direction) {
    this.to(this.#beside(this.timeline.acts, direction));
  }

  #beside(indices, direction) {
    const place = direction > 0 ? lastNotAbove(indices, this.index) + 1 : lastNotAbove(indices, this.index - 1);
    return indices[place] ?? (direction > 0 ? this.timeline.length - 1 : 0);
  }

  why(index, move = false) {
    this.set({ asked: index === null ? [] : this.timeline.records[index].id, ...(move ? { at: index } : {}) });
  }

  // Shows another branch beside this run; closing it needs no kernel.
  compare(name) {
    if (name) return this.wish("compare", { name });
    this.set({ other: [], other_name: "", parted: -1 });
    this.#send({ do: "compare", name: "", n: 0 });
  }

  // Sends a command to Python; the buttons are disabled until it is done.
  wish(what, more = {}) {
    this.comparing = ["compare", "without"].includes(what) ? this.root.querySelector(".kc-beside") : null; // its result is above the button
    this.asked = Math.max(this.asked, this.model.get("done") ?? 0) + 1;
    this.sendShown();
    this.#send({ do: what, n: this.asked, ...more });
    this.draw();
  }

  // Keys are not passed on, because JupyterLab would take `d d` for "delete the cell".
  #key(event) {
    if (event.target.matches?.("input[type=text], select")) {
      if (event.key !== "Escape" && event.key !== "Tab") event.stopPropagation();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.key === "Escape" || event.key === "Tab") return;
    const keys = {
      ArrowLeft: () => (event.shiftKey ? this.fault(-1) : this.by(-1)),
      ArrowRight: () => (event.shiftKey ? this.fault(1) : this.by(1)),
      Home: () => this.to(0),
      End: () => this.to(Infinity),
    };
    if (event.shiftKey && !(event.key in keys)) return;
    event.stopPropagation();
    if (event.key in keys) {
      event.preventDefault();
      keys[event.key]();
    }
  }
}

function render({ model, el: host }) {
  const view = new View(model, host);
  return () => view.close();
}

export { MACHINES, differences, placeBeside, squares, strips, unsaid };

export default { initialize, render };
