// The state that a picture shows, from the journal alone. The same as kcontrol/runtime/fold.py, name by name: a test holds them equal.
// Maps are objects without a prototype, because their keys come from outside.

export const map = (entries) => Object.assign(Object.create(null), entries);

export function emptyState() {
  return { znodes: map(), nodes: map(), channels: map(), questions: map() };
}

function emptyNode(s) {
  const node = { controller: map(), broker: map(), queues: map(), handling: map(), timers: map(), parked: map(), notices: [], frozen: false };
  return s.consumers ? { ...node, group: map() } : node;
}

// The broker that made a record, or null: what a client, ZooKeeper or the world does has a negative node.
export const brokerOf = (record) => (record.id[0] < 0 ? null : record.id[0]);

const GONE = new Set(["NonExistentPartition", "NonExistentReplica"]);
const APIS = [["leader_and_isr", "LeaderAndIsr"], ["update_metadata", "UpdateMetadata"], ["stop_replica", "StopReplica"]];

// Copies every container down to `depth`; what lies deeper is never changed in place and may be shared.
export function copy(value, depth) {
  if (depth === 0 || value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.slice();
  const twin = Object.create(null);
  for (const key in value) twin[key] = copy(value[key], depth - 1);
  return twin;
}

const DEEP = { znodes: 1, nodes: 4, channels: 2, questions: 2, logs: 3, acknowledged: 2, consumers: 1, offsets_logs: 2 }; // how deep a part is changed in place

export function copyState(s) {
  return Object.fromEntries(Object.entries(s).map(([name, part]) => [name, copy(part, DEEP[name])]));
}

// How many entries a copy of a state has.
export function entriesOf(s) {
  const count = (value, depth) => {
    if (depth === 0 || value === null || typeof value !== "object") return 0;
    const items = Object.values(value);
    return items.length + (Array.isArray(value) ? 0 : items.reduce((sum, item) => sum + count(item, depth - 1), 0));
  };
  return Object.entries(s).reduce((sum, [name, part]) => sum + count(part, DEEP[name]), 0);
}

// By code point, as Python compares text.
function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  const left = [...String(a)], right = [...String(b)];
  for (let i = 0; i < left.length && i < right.length; i++) {
    if (left[i] !== right[i]) return left[i].codePointAt(0) - right[i].codePointAt(0);
  }
  return left.length - right.length;
}

export function statePath(partition) {
  const dash = partition.lastIndexOf("-");
  return `/brokers/topics/${partition.slice(0, dash)}/partitions/${+partition.slice(dash + 1)}/state`;
}

function stateText(v) {
  const recovery = v.leader_recovery_state ? `"leader_recovery_state":${v.leader_recovery_state},` : "";
  return `{"controller_epoch":${v.controller_epoch},"leader":${v.leader},"version":1,${recovery}"leader_epoch":${v.leader_epoch},"isr":[${v.isr.join(",")}]}`;
}

export function partitionOf(change) {
  const at = change.subject.lastIndexOf("@");
  return change.machine === "replica" && at > 0 ? change.subject.slice(0, at) : change.subject;
}

function hosted(entry) {
  const { leader, isr, leader_epoch, zk_version, controller_epoch, replicas } = entry;
  return { value: { leader, isr, leader_epoch, zk_version, controller_epoch }, replicas, pending_isr: [] };
}

function emptyLog() {
  const inMemory = { leader: -1, leader_epoch: -1, followers: [], waiting: [], truncating: false, min_insync_replicas: null };
  return { records: [], epochs: [], checkpoint: 0, high_watermark: 0, ...inMemory };
}

// ---------------------------------------------------------------- one function for each kind: state, the record's node, fields, record

const count = (brokers, broker) => (brokers ?? []).filter((one) => one === broker).length;

const start = (s, n, f) => { s.nodes[f.broker] = emptyNode(s); };

function stop(s, n, f) {
  delete s.nodes[f.broker];
  for (const pair of Object.keys(s.channels)) {
    const [sender, receiver] = pair.split(">").map(Number);
    if (![sender, receiver].includes(f.broker)) continue;
    const kept = sender === f.broker ? s.channels[pair].slice(0, count(f.unread, receiver)) : s.channels[pair].slice(count(f.left, sender));
    if (kept.length) s.channels[pair] = kept;
    else delete s.channels[pair];
  }
  delete s.questions[f.broker];
  for (const log of Object.values(s.logs?.[f.broker] ?? {})) {
    const { records, checkpoint, epochs } = log;
    Object.assign(log, emptyLog(), { records, checkpoint, epochs, high_watermark: Math.min(checkpoint, records.length) });
  }
}

function run(s, n, f) {
  if (f.data) Object.assign(s, { logs: map(), acknowledged: map() });
  if (Object.keys(f.consumers ?? {}).length) Object.assign(s, { consumers: map(f.consumers), offsets_logs: map() });
}

function log(s, n, f, r) {
  const held = ((s.logs[f.broker ?? r.id[0]] ??= map())[f.partition] ??= emptyLog());
  if (r.kind === "log_append") held.records = [...held.records, ...f.records];
  else if (f.removed) held.records = held.records.slice(0, f.offset);
  Object.assign(held, f.now);
}

function acknowledged(s, n, { partition, ...promise }) {
  s.acknowledged[partition] = [...(s.acknowledged[partition] ?? []), promise];
}

function recordLost(s, n, { partition, ...gone }) {
  const kept = s.acknowledged[partition].filter((p) => Object.keys(p).some((name) => p[name] !== gone[name]));
  if (kept.length) s.acknowledged[partition] = kept;
  else delete s.acknowledged[partition];
}

const close = (s, n, f) => { for (const path of f.deleted) delete s.znodes[path]; };

const notify = (s, n, f) => { s.nodes[f.to].notices.push([f.type, f.path]); };

function enqueue(s, n, f) {
  if (f.noticed) n.notices.shift();
  (n.queues[f.thread] ??= []).push(f.event);
}

const begin = (s, n, f) => { n.handling[f.thread] = n.queues[f.thread].shift(); };

function write(s, n, f, r) {
  if (f.error !== null) return;
  for (const [kind, path, text, version, ephemeral] of f.ops) {
    if (kind === "delete") delete s.znodes[path];
    else if (kind === "create") s.znodes[path] = [text, 0, ephemeral ? brokerOf(r) : null];
    else if (kind === "set") s.znodes[path] = [text, version, s.znodes[path][2]];
  }
}

function change(s, n, f) {
  const states = (n.controller[`${f.machine}_states`] ??= map());
  if (GONE.has(f.target)) delete states[f.subject];
  else states[f.subject] = f.target;
  if (f.value === null) return;
  const partition = partitionOf(f);
  (n.controller.leadership ??= map())[partition] = f.value;
  if (f.write) s.znodes[statePath(partition)] = [stateText(f.value), f.value.zk_version, null];
}

function learn(s, n, f) {
  const context = (n[f.context] ??= map());
  if (f.of === "value") {
    context[f.field] = f.put;
  } else if (f.of === "map") {
    const held = f.clear ? (context[f.field] = map()) : (context[f.field] ??= map());
    for (const key of f.remove) delete held[key];
    Object.assign(held, f.put);
  } else {
    const gone = new Set(f.remove);
    const kept = (f.clear ? [] : context[f.field] ?? []).filter((item) => !gone.has(item));
    context[f.field] = [...new Set([...kept, ...(f.put ?? [])])].sort(compare);
  }
}

function group(s, n, f) {
  const groups = (n.group.groups ??= map());
  if (f.value === null) delete groups[f.group];
  else groups[f.group] = f.value;
}

const consumer = (s, n, f) => { s.consumers[f.name] = f.now; };

const offsetsAppend = (s, n, f) => { (s.offsets_logs[f.partition] ??= []).push(f.batch); };

function adopt(s, n, f, r, sent) {
  const requests = sent(f.request);
  let told;
  if (f.field === "metadata") {
    told = map(requests.update_metadata.partitions);
  } else {
    const named = requests.leader_and_isr;
    told = map();
    for (const i of named.to[r.id[0]]) told[named.values[i].partition] = hosted(named.values[i]);
  }
  const held = (n.broker[f.field] ??= map());
  for (const tp of f.partitions ?? Object.keys(told)) held[tp] = told[tp];
}

function send(s, n, f, r) {
  for (const [key, api] of APIS) {
    const to = f.requests[key]?.to ?? [];
    for (const receiver of Array.isArray(to) ? to : Object.keys(to)) {
      (s.channels[`${r.id[0]}>${receiver}`] ??= []).push([r.id.join("."), api]);
    }
  }
}

function answered(s, n, f) {
  s.channels[f.channel].shift();
  if (!s.channels[f.channel].length) delete s.channels[f.channel];
}

function duplicate(s, n, f) {
  const waiting = s.channels[`${f.sender}>${f.receiver}`];
  waiting.unshift(waiting[0]);
}

function closeChannels(s, n, f, r) {
  for (const receiver of f.to) {
    const pair = `${r.id[0]}>${receiver}`;
    const kept = (s.channels[pair] ?? []).slice(0, count(f.unread, receiver));
    if (kept.length) s.channels[pair] = kept;
    else delete s.channels[pair];
  }
}

const ask = (s, n, f, r) => { (s.questions[r.id[0]] ??= []).push({ record: r.id.join("."), api: f.api, body: f.body }); };

function told(s, n, f) {
  const settled = new Set(f.settled);
  s.questions[f.broker] = s.questions[f.broker].filter((question) => !settled.has(question.record));
  if (!s.questions[f.broker].length) delete s.questions[f.broker];
}

const arm = (s, n, f) => { n.timers[f.timer] = { at_ms: f.fires_at_ms, thread: f.thread, event: f.event }; };

const disarm = (s, n, f) => { delete n.timers[f.timer]; };

const CHANGES = {
  run, start, stop, close, notify, enqueue, begin, write, change, learn, adopt, send, answered, duplicate, ask, told, arm,
  group, consumer, offsets_append: offsetsAppend,
  session_lost: (s, n) => { n.notices.length = 0; },
  freeze: (s, n, f) => { s.nodes[f.broker].frozen = true; },
  thaw: (s, n, f) => { s.nodes[f.broker].frozen = false; },
  drop: (s, n) => { n.notices.shift(); },
  end: (s, n, f) => { delete n.handling[f.thread]; },
  preempt: (s, n, f) => { n.queues[f.thread].shift(); },
  close_channels: closeChannels,
  log_append: log, log_truncate: log, log_role: log, log_config: log, high_watermark: log, follower_end: log, checkpoint: log, tail_lost: log,
  acknowledged, record_lost: recordLost, record_deleted: recordLost,
  log_delete: (s, n, f, r) => {
    const logs = s.logs[r.id[0]];
    delete logs[f.partition];
    if (!Object.keys(logs).length) delete s.logs[r.id[0]];
  },
  cancel: disarm,
  fire: disarm,
  park: (s, n, f) => { n.parked[f.correlation_id] = f.key; },
  respond: (s, n, f) => { if (n) delete n.parked[f.correlation_id]; },
};

// Takes in the next record. `sent` finds the requests of a `send` record by its id.
export function foldInto(state, record, sent) {
  if (Object.hasOwn(CHANGES, record.kind)) CHANGES[record.kind](state, state.nodes[record.id[0]], record.fields, record, sent);
}
