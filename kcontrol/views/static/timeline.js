// The journal as it grows: what happened when, what it was because of, and the state after any record.

import { copyState, emptyState, entriesOf, foldInto, map, partitionOf, statePath } from "./fold.js";

const EVERY = 64; // records between two checkpoints at least; where the state has more entries than that, as many as it has

export const keyOf = (id) => id.join(".");

// What a picture shows beside the state: sessions, frozen processes, when each znode was written, which requests their receivers
// have taken, what logs have lost, what was last.
function emptySeen() {
  return { sessions: map(), frozen: map(), stats: map(), lit: [], litAt: -1, shapeAt: -1, moves: map(), taken: map(), cuts: map(), lost: map() };
}

function copySeen(seen) {
  return { ...seen, sessions: map(seen.sessions), frozen: map(seen.frozen), stats: map(seen.stats), moves: map(seen.moves), taken: map(seen.taken), cuts: map(seen.cuts), lost: map(seen.lost) };
}

function noteWrite(seen, index, zxid, ops) {
  seen.lit = ops.map((op) => op[1]);
  seen.litAt = index;
  if (ops.some(([kind]) => kind !== "set")) seen.shapeAt = index; // since then there are the same znodes
  for (const [kind, path] of ops) {
    if (kind === "delete") delete seen.stats[path];
    else seen.stats[path] = { czxid: kind === "create" ? zxid : seen.stats[path]?.czxid ?? zxid, mzxid: zxid, index };
  }
}

function noteSession(seen, record) {
  const f = record.fields;
  if (record.kind === "open") {
    seen.sessions[f.session] = { broker: record.id[0], held: true };
  } else if (record.kind === "close") {
    delete seen.sessions[f.session];
  } else {
    for (const [id, session] of Object.entries(seen.sessions)) {
      if (session.broker === f.broker) seen.sessions[id] = { ...session, held: false };
    }
  }
}

// Which request of a channel its receiver has taken: it is in flight, at the head of the channel, until it is answered or given up.
function noteTaken(seen, record) {
  const f = record.fields;
  if (record.kind === "receive") seen.taken[`${f.sender}>${record.id[0]}`] = true;
  else if (record.kind === "answered") delete seen.taken[f.channel];
  else if (record.kind === "close_channels") for (const receiver of f.to) delete seen.taken[`${record.id[0]}>${receiver}`];
}

function forget(seen, broker) {
  for (const pair in seen.taken) if (pair.split(">").includes(String(broker))) delete seen.taken[pair];
}

function see(seen, record, index) {
  const f = record.fields;
  switch (record.kind) {
    case "open": noteSession(seen, record); break;
    case "stop": noteSession(seen, record); forget(seen, f.broker); delete seen.frozen[f.broker]; break;
    case "freeze": seen.frozen[f.broker] = true; break;
    case "thaw": delete seen.frozen[f.broker]; break;
    case "close":
      noteSession(seen, record);
      if (f.deleted.length) noteWrite(seen, index, f.zxid, f.deleted.map((path) => ["delete", path]));
      break;
    case "write": if (f.error === null) noteWrite(seen, index, f.zxid, f.ops.filter((op) => op[0] !== "check")); break;
    case "change":
      if (f.write) noteWrite(seen, index, f.zxid, [[f.write, statePath(partitionOf(f))]]);
      seen.moves[f.machine] = index;
      break;
    case "log_append": case "log_delete": delete seen.cuts[`${record.id[0]} ${f.partition}`]; break;
    case "log_truncate": case "tail_lost": seen.cuts[`${f.broker ?? record.id[0]} ${f.partition}`] = { index, offset: f.offset, removed: f.removed }; break;
    case "record_lost": seen.lost[f.partition] = [...(seen.lost[f.partition] ?? []), f]; break;
    default: noteTaken(seen, record);
  }
}

// The last position in a sorted array whose value is not above `value`; -1 where there is none.
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
    this.records = records; // the model's own array, so that what is saved with a notebook is whole
    this.byId = new Map();
    this.all = []; // every index
    this.shown = []; // the indices of records that change or move something
    this.acts = []; // the indices of what somebody did to the cluster
    this.decisions = []; // the indices of records that decide something
    this.links = new Map(); // index of what was told -> [indices of where it arrived]
    this.from = new Map(); // the other way round
    this.lives = []; // {broker, from, to, frozen}: stretches in which a process was there
    this.reigns = []; // {broker, from, to}: stretches in which /controller named a broker
    this.checkpoints = [{ index: -1, state: emptyState(), seen: emptySeen() }]; // as kcontrol/runtime/history.py has them
    this.due = EVERY - 1; // the index after which the next one is made
    this.listeners = new Set();
    this.place = Infinity; // the index that is shown, in all views alike; what is beyond the end is the end
    this.current = null;
    records.forEach((record, index) => this.#index(record, index));
  }

  get length() {
    return this.records.length;
  }

  // Takes in records that begin at index `from`; what is known already is passed over. Returns false where some are missing between.
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
    return record.kind === "receive" || record.kind === "drop" || (record.kind === "enqueue" && record.fields.noticed);
  }

  #noteLives(record, index) {
    const f = record.fields, ends = ["stop", "freeze", "thaw"].includes(record.kind);
    const last = ends && this.lives.findLast((life) => life.broker === f.broker && life.to === null);
    if (last) last.to = index;
    if (["start", "freeze", "thaw"].includes(record.kind)) {
      this.lives.push({ broker: f.broker, from: index, to: null, frozen: record.kind === "freeze" });
    }
    const touched = record.kind === "close" ? f.deleted.map((path) => ["delete", path]) : record.kind === "write" && f.error === null ? f.ops : [];
    for (const [kind, path, text] of touched) if (path === "/controller") this.#crown(kind === "delete" ? null : crowned(text), index);
  }

  #crown(broker, index) {
    const last = this.reigns.at(-1);
    if (last && last.to === null) last.to = index;
    if (broker !== null) this.reigns.push({ broker, from: index, to: null });
  }

  // The state after record `index`, and what was seen on the way. It is the caller's until the next call.
  at(index) {
    const checkpoint = this.checkpoints[this.#checkpointBefore(index)];
    const goesOn = this.current && this.current.index <= index && this.current.index >= checkpoint.index;
    const position = goesOn ? this.current : { index: checkpoint.index, state: copyState(checkpoint.state), seen: copySeen(checkpoint.seen) };
    this.current = null; // a record that cannot be folded leaves nothing half done behind
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

  #advance(position) {
    const index = ++position.index, record = this.records[index];
    foldInto(position.state, record, (id) => this.records[this.byId.get(keyOf(id))].fields.requests);
    see(position.seen, record, index);
    if (index !== this.due) return;
    this.checkpoints.push({ index, state: copyState(position.state), seen: copySeen(position.seen) });
    this.due = index + Math.max(EVERY, entriesOf(position.state));
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

// The broker that the text of /controller names, or null. Very old releases wrote a bare number.
export function crowned(text) {
  const value = parsed(text);
  const broker = typeof value === "number" ? value : value?.brokerid;
  return Number.isInteger(broker) ? broker : null;
}

const memo = new Map();

// What a znode's text holds, or null where it is no JSON. Few texts are parsed again and again.
export function parsed(text) {
  if (!memo.has(text)) {
    if (memo.size > 5000) memo.clear();
    let value = null;
    try {
      value = JSON.parse(text);
    } catch {
      // anybody may write anything into a znode
    }
    memo.set(text, value);
  }
  return memo.get(text);
}
