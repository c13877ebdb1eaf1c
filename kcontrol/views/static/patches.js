// Applies the changes that rows carry, as kcontrol/views/patches.py describes them. This module derives nothing from records.
// Maps are objects without a prototype, because their keys come from outside.

export const map = (entries) => Object.assign(Object.create(null), entries);

const PARTS = ["znodes", "nodes", "partitions", "channels", "to_controller", "sessions", "czxid", "mzxid", "moves", "taken", "cuts", "lost"];

export const emptyState = () => map({ ...Object.fromEntries(PARTS.map((part) => [part, map()])), controller: null });

// Copies every object. Lists are shared, because a change creates a new list.
export function copy(value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  const twin = Object.create(null);
  for (const key in value) twin[key] = copy(value[key]);
  return twin;
}

// The number of entries of a copy.
export function entriesOf(value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return 0;
  return Object.values(value).reduce((sum, item) => sum + 1 + entriesOf(item), 0);
}

const CHANGES = {
  put: (held, key, value) => { held[key] = copy(value); }, // the row's own value must not change later
  drop: (held, key) => { delete held[key]; },
  update: (held, key, values) => { Object.assign(held[key], values); },
  omit: (held, key, keys) => { for (const one of keys) delete held[key][one]; },
  push: (held, key, value) => { held[key] = [...held[key], value]; },
  shift: (held, key) => { held[key] = held[key].slice(1); },
  extend: (held, key, values) => { held[key] = [...held[key], ...values]; },
  keep: (held, key, count) => { held[key] = held[key].slice(0, count); },
};

// A part of a form as a function of the row: a place of the row, a list or an object of parts, or a literal.
function reader(part) {
  if (typeof part === "string" && part.startsWith("$")) {
    const way = part.slice(1).split(".");
    return (row) => way.reduce((value, key) => value[key], row);
  }
  if (part === null || typeof part !== "object") return () => part;
  const parts = Object.entries(part).map(([key, value]) => [key, reader(value)]);
  if (Array.isArray(part)) return (row) => parts.map(([, read]) => read(row));
  return (row) => map(Object.fromEntries(parts.map(([key, read]) => [key, read(row)])));
}

// A form as functions of the row: for each change its operation, its value and the keys of its path.
export const readForm = (form) => form.map(([op, ...parts]) => [CHANGES[op], ...parts.map(reader)]);

// Applies the changes of a row; returns the paths of changed znodes, each with a flag for a created or deleted znode.
// `all` has the texts of this row and of the rows before it.
export function applyTo(state, row, form, all) {
  const texts = row.texts?.map((text) => (typeof text === "number" ? all[text] : text));
  const source = { ...row, texts, key: row.id.join(".") }, znodes = [];
  for (const [make, value, ...keys] of form) {
    const path = keys.map((read) => read(source)), last = path.pop();
    const held = path.reduce((found, key) => found[key], state), before = last in held;
    make(held, last, value(source));
    if (path[0] === "znodes") znodes.push([last, before !== last in held]);
  }
  return znodes;
}
