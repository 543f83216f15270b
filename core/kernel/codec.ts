/**
 * Describes the form in which a value is stored as JSON. Writing and reading both follow from the one description.
 *
 * Invariants: reading what was written returns an equal value. Reading anything that does not have the form throws
 * TypeError, with one exception: `word` trusts that a text is one of the words that the program wrote.
 */
import { type Timestamp, timestamp } from './ids.ts';
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from './json.ts';

export interface Codec<Value, Stored extends JsonValue = JsonValue> {
  write(value: Value): Stored;
  read(stored: JsonValue): Value;
}

type Named<Value> = { readonly [name: string]: Value };

/** The `write` of codecs whose values are JSON already. A codec that is made of only such codecs copies nothing. */
function jsonValue(value: unknown): JsonValue {
  return value as JsonValue;
}

/** A text that its parser turns into a branded one. */
export function parsed<Value extends string>(parse: (stored: string) => Value): Codec<Value> {
  return {
    write: jsonValue,
    read(stored) {
      if (typeof stored !== 'string') throw new TypeError('The stored value is not a text');
      return parse(stored);
    },
  };
}

export const text: Codec<string> = parsed((stored) => stored);
export const time: Codec<Timestamp> = parsed(timestamp);

/** A text out of a set of words. */
export function word<Word extends string>(): Codec<Word> {
  return parsed(parseWord<Word>);
}

function parseWord<Word extends string>(stored: string): Word {
  return stored as Word;
}

export const number: Codec<number> = {
  write: jsonValue,
  read(stored) {
    if (typeof stored !== 'number') throw new TypeError('The stored value is not a number');
    return stored;
  },
};

export const flag: Codec<boolean> = {
  write: jsonValue,
  read(stored) {
    if (typeof stored !== 'boolean') throw new TypeError('The stored value is neither true nor false');
    return stored;
  },
};

export function nullable<Value>(codec: Codec<Value>): Codec<Value | null>;
export function nullable(codec: Codec<unknown>): Codec<unknown> {
  return {
    write: codec.write === jsonValue ? jsonValue : (value) => (value === null ? null : codec.write(value)),
    read: (stored) => (stored === null ? null : codec.read(stored)),
  };
}

export function list<Item>(item: Codec<Item>): Codec<readonly Item[]> {
  return {
    write: (values) => values.map((value) => item.write(value)),
    read: (stored) => parseArray(stored).map((one) => item.read(one)),
  };
}

/** A list of a fixed length in which each place has a type of its own. */
export function tuple<Values extends readonly unknown[]>(
  ...codecs: { readonly [At in keyof Values]: Codec<Values[At]> }
): Codec<Readonly<Values>>;
export function tuple(...codecs: readonly Codec<unknown>[]): Codec<unknown[]> {
  const areJson = codecs.every(({ write }) => write === jsonValue);
  return {
    write: areJson ? jsonValue : (values) => codecs.map((codec, at) => codec.write(values[at])),
    read(stored) {
      const items = parseArray(stored);
      if (items.length !== codecs.length) throw new TypeError(`The stored list has not ${codecs.length} values`);
      return items.map((item, at) => codecs[at]?.read(item));
    },
  };
}

/** Writes only the members that it has codecs for. */
export function object<Value extends object>(
  codecs: {
    readonly [Name in keyof Value]: Codec<Value[Name]>;
  },
): Codec<Value, JsonObject>;
export function object(codecs: Named<Codec<unknown>>): Codec<Named<unknown>, JsonObject> {
  const members = Object.entries(codecs);
  return {
    write(value) {
      const stored: { [name: string]: JsonValue } = {};
      for (const [name, codec] of members) stored[name] = codec.write(value[name]);
      return stored;
    },
    read(stored) {
      const all = parseObject(stored);
      const value: { [name: string]: unknown } = {};
      for (const [name, codec] of members) value[name] = codec.read(parseMember(all[name], name));
      return value;
    },
  };
}

type All<Values extends readonly unknown[]> = Values extends readonly [infer First, ...infer Others]
  ? First & All<Others>
  : unknown;

/** Stores the members of several objects in one. */
export function merged<Values extends readonly object[]>(
  ...codecs: { readonly [At in keyof Values]: Codec<Values[At], JsonObject> }
): Codec<All<Values>, JsonObject>;
export function merged(...codecs: readonly Codec<object, JsonObject>[]): Codec<object, JsonObject> {
  return {
    write: (value) => codecs.reduce<JsonObject>((all, codec) => ({ ...all, ...codec.write(value) }), {}),
    read: (stored) => codecs.reduce<object>((all, codec) => ({ ...all, ...codec.read(stored) }), {}),
  };
}

/** Members that are the same in every value, and are not stored. */
export function unstored<Value extends object>(value: Value): Codec<Value, JsonObject> {
  return { write: () => ({}), read: () => value };
}

type Tagged<Tag extends string, Cases> = {
  [Name in keyof Cases]: { readonly [Member in Tag]: Name } & Cases[Name];
}[keyof Cases];

/** An object that has one of several forms. The member `tag` names it. */
export function tagged<Tag extends string, Cases extends Named<object>>(
  tag: Tag,
  cases: { readonly [Name in keyof Cases]: Codec<Cases[Name], JsonObject> },
): Codec<Tagged<Tag, Cases>, JsonObject>;
export function tagged(tag: string, cases: Named<Codec<object, JsonObject>>): Codec<Named<unknown>, JsonObject> {
  const formOf = (value: Named<unknown>) => {
    const name = String(value[tag]);
    const codec = Object.hasOwn(cases, name) ? cases[name] : undefined;
    if (codec === undefined) throw new TypeError(`The value has no form that ${tag} names`);
    return { name, codec };
  };
  return {
    write(value) {
      const { name, codec } = formOf(value);
      return { ...codec.write(value), [tag]: name };
    },
    read(stored) {
      const { name, codec } = formOf(parseObject(stored));
      return { ...codec.read(stored), [tag]: name };
    },
  };
}

/** Stores a value in another form, which `codec` writes and reads. */
export function converted<Value, Form, Stored extends JsonValue>(
  codec: Codec<Form, Stored>,
  to: (value: Value) => Form,
  from: (form: Form) => Value,
): Codec<Value, Stored> {
  return { write: (value) => codec.write(to(value)), read: (stored) => from(codec.read(stored)) };
}

/** A map is stored as a list of its entries, in its order. */
export function map<Key, Value>(key: Codec<Key>, value: Codec<Value>): Codec<Map<Key, Value>> {
  return converted(
    list(tuple(key, value)),
    (values: Map<Key, Value>) => [...values],
    (entries) => new Map(entries),
  );
}

/** A map whose values hold their key is stored as a list of the values, in its order. */
export function byId<Value extends { readonly id: unknown }>(
  value: Codec<Value>,
): Codec<ReadonlyMap<Value['id'], Value>> {
  return converted(
    list(value),
    (values: ReadonlyMap<Value['id'], Value>) => [...values.values()],
    (values) => new Map(values.map((one) => [one.id, one])),
  );
}

function parseArray(stored: JsonValue): readonly JsonValue[] {
  if (!isJsonArray(stored)) throw new TypeError('The stored value is not a list');
  return stored;
}

function parseObject(stored: JsonValue): JsonObject {
  if (!isJsonObject(stored)) throw new TypeError('The stored value is not an object');
  return stored;
}

function parseMember(member: JsonValue | undefined, name: string): JsonValue {
  if (member === undefined) throw new TypeError(`The stored value has no member ${name}`);
  return member;
}
