// The growing journal: its records, their causes, and the state after any record.

import { applyTo, copy, emptyState, entriesOf, readForm } from "./patches.js";

const EVERY = 64; // the fewest records between two checkpoints; a state with more entries than this has as many records

export const keyOf = (id) => id.join(".");

// The broker that made a record, or null: records of clients, ZooKeeper and the world have a negative node.
export const brokerOf = (record) => (record.id[0] < 0 ? null : record.id[0]);

// The last position in a sorted array whose value is not above `value`; -1 if there is none.
export function lastNotAbove(sorted, value) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

export class Timeline {
  constructor(records) {
    this.records = records; // the model's own array, so that a saved notebook has all records
    this.byId = new Map();
    this.all = []; // every index
    this.shown = []; // the indices of records of importance 1 or 2
    this.acts = []; // the indices of actions from outside
    this.decisions = []; // the indices of records with a decision
    this.links = new Map(); // index of a send or a notification -> [indices of its arrivals]
    this.from = new Map(); // index of an arrival -> index of its send or notification
    this.lives = []; // {broker, from, to, frozen}: the intervals in which a process runs
    this.reigns = []; // {broker, from, to}: the intervals in which /controller names a broker
    this.checkpoints = [{ index: -1, state: emptyState(), lit: [], litAt: -1, shapeAt: -1 }]; // as kcontrol/journal/state_history.py has them
    this.due = EVERY - 1; // the index after which the next checkpoint is made
    this.forms = []; // the forms of patches, in the order of their first use
    this.texts = []; // the long texts of patches, in the order of their first use
    this.explanations = []; // lists of texts, in the order of their first use
    this.patches = []; // by index, the form of a row that has a patch
    this.listeners = new Set();
    this.place = Infinity; // the index that is shown in all views; a larger one means the last record
    this.current = null;
    records.forEach((record, index) => this.#index(record, index));
  }

  get length() {
    return this.records.length;
  }

  // Adds records that begin at index `from`, without those that are known. Returns false if records are missing before them.
  append(records, from) {
    if (from > this.length) return false;
    const grows = from + records.length > this.length;
    for (const record of records.slice(this.length - from)) this.#index(record, this.records.push(record) - 1);
    if (grows) this.show(Infinity);
    return true;
  }

  show(index) {
    this.place = index;
    for (const listener of this.listeners) listener();
  }

  #index(record, index) {
    this.byId.set(keyOf(record.id), index);
    this.all.push(index);
    if (Array.isArray(record.patch)) this.forms.push(readForm(record.patch));
    for (const text of record.texts ?? []) if (typeof text === "string") this.texts.push(text);
    if (Array.isArray(record.explained)) this.explanations.push(record.explained);
    this.patches.push(Array.isArray(record.patch) ? this.forms.at(-1) : this.forms[record.patch]);
    if (record.weight > 0) this.shown.push(index);
    if (record.weight > 1) this.acts.push(index);
    if (record.decides) this.decisions.push(index);
    const cause = record.cause ? this.byId.get(keyOf(record.cause)) : undefined;
    if (cause !== undefined && this.#isArrival(record)) {
      this.from.set(index, cause);
      this.links.set(cause, [...(this.links.get(cause) ?? []), index]);
    }
    this.#noteLives(record, index);
  }

  #isArrival(record) {
    return record.kind === "receive" || record.kind === "drop_notification" || (record.kind === "enqueue" && record.fields.is_notification);
  }

  #noteLives(record, index) {
    const f = record.fields, ends = ["stop", "freeze", "thaw"].includes(record.kind);
    const last = ends && this.lives.findLast((life) => life.broker === f.broker && life.to === null);
    if (last) last.to = index;
    if (["start", "freeze", "thaw"].includes(record.kind)) {
      this.lives.push({ broker: f.broker, from: index, to: null, frozen: record.kind === "freeze" });
    }
    if (record.reign !== undefined) this.#crown(record.reign, index);
  }

  #crown(broker, index) {
    const last = this.reigns.at(-1);
    if (last && last.to === null) last.to = index;
    if (broker !== null) this.reigns.push({ broker, from: index, to: null });
  }

  // The state after record `index`, and the znodes of the last change. The state is valid until the next call.
  at(index) {
    const checkpoint = this.checkpoints[this.#checkpointBefore(index)];
    const goesOn = this.current && this.current.index <= index && this.current.index >= checkpoint.index;
    const position = goesOn ? this.current : { ...checkpoint, state: copy(checkpoint.state) };
    this.current = null; // a record with an error must not leave a half-changed state
    while (position.index < index) this.#advance(position);
    this.current = position;
    return position;
  }

  #checkpointBefore(index) {
    let low = 0, high = this.checkpoints.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.checkpoints[middle].index <= index) low = middle;
      else high = middle;
    }
    return low;
  }

  // `lit` has the paths of the last change of znodes, made by record `litAt`; since `shapeAt` no znode was created or deleted.
  #advance(position) {
    const index = ++position.index, record = this.records[index], form = this.patches[index];
    if (record.broken) throw new Error(record.broken);
    const znodes = form ? applyTo(position.state, record, form, this.texts) : [];
    if (znodes.length) Object.assign(position, { lit: znodes.map(([path]) => path), litAt: index });
    if (znodes.some(([, changed]) => changed)) position.shapeAt = index;
    if (index !== this.due) return;
    this.checkpoints.push({ ...position, state: copy(position.state) });
    this.due = index + Math.max(EVERY, entriesOf(position.state));
  }

  // The explanations of a record: the row of its table, its rule, and its place in Kafka.
  explained(index) {
    const { explained = [] } = this.records[index];
    return Array.isArray(explained) ? explained : this.explanations[explained];
  }

  // The chain of causes of a record, nearest first, as indices.
  why(index) {
    const chain = [];
    for (let i = index; i !== undefined && !chain.includes(i); ) {
      chain.push(i);
      const cause = this.records[i].cause;
      i = cause ? this.byId.get(keyOf(cause)) : undefined;
    }
    return chain;
  }
}
