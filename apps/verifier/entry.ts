/**
 * The checks of one entry: its members, its openings and its leaf; and of its place among the others: the revisions of
 * its stream, and its account.
 *
 * Invariants: what the account's own streams say of their account is compared with the checkpoint's, so that an
 * export cannot be taken for another account's.
 */
import { createHash } from 'node:crypto';
import { canonicalText, isArray, isObject, type Json, type JsonObject } from './canonical.ts';
import { isInstant } from './slice.ts';
import { type Hash, leafHash } from './tree.ts';

export interface CheckedEntry {
  readonly sequence: number;
  readonly stream: string;
  readonly type: string;
  readonly revision: number;
  readonly occurredAt: string;
  readonly leaf: Hash;
  readonly openings: number;
}

/** In canonical order, with what each must be. `sequence` is not hashed: it is the leaf's index. */
const MEMBERS: readonly (readonly [name: string, isValid: (value: Json) => boolean])[] = [
  ['actor', isActor],
  ['causation_id', (value) => value === null || isText(value)],
  ['data', isObject],
  ['id', isText],
  ['occurred_at', (value) => typeof value === 'string' && isInstant(value)],
  ['request_id', isText],
  ['revision', isCount],
  ['sequence', isCount],
  ['source_address_ref', (value) => value === null || isReference(value)],
  ['stream', (value) => typeof value === 'string' && /^[A-Za-z]+-[^\n\r\u2028\u2029]/.test(value)],
  ['type', isText],
  ['version', (value) => isCount(value) && value !== 0],
];

function isText(value: Json): boolean {
  return typeof value === 'string';
}

function isCount(value: Json): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function isReference(value: Json): value is string {
  return typeof value === 'string' && /^[0-9a-f]{64}$/.test(value);
}

function isActor(value: Json): boolean {
  return isObject(value) && Object.keys(value).length === 2 && isText(value['kind'] ?? 0) && isText(value['id'] ?? 0);
}

/** A line of an export. A guard has no openings. */
export interface EntryLine {
  readonly entry: JsonObject;
  readonly leaf: string;
  readonly openings: JsonObject | null;
}

/**
 * Returns what the entry says, or a text that says what is wrong with it. `line` is the whole line, which must be its
 * canonical text.
 */
export function checkEntry({ entry, leaf, openings }: EntryLine, line: string): CheckedEntry | string {
  if (Object.keys(entry).length !== MEMBERS.length) return 'its entry has not exactly the twelve members';
  let hashed = '';
  let whole = '';
  try {
    for (const [name, isValid] of MEMBERS) {
      const value = entry[name];
      if (value === undefined || !Object.hasOwn(entry, name)) return `its entry has no ${name}`;
      if (!isValid(value)) return `the ${name} of its entry has not the form of one`;
      const member = `${JSON.stringify(name)}:${canonicalText(value, 2)}`;
      whole += (whole === '' ? '' : ',') + member;
      if (name !== 'sequence') hashed += (hashed === '' ? '' : ',') + member;
    }
    const head = `{"entry":{${whole}},${openings === null ? '"guard":true,' : ''}"leaf":${canonicalText(leaf)}`;
    const canonical = openings === null ? `${head}}` : `${head},"openings":${canonicalText(openings, 1)}}`;
    if (canonical !== line) return 'it is not canonical JSON (RFC 8785)';
  } catch (error) {
    if (error instanceof SyntaxError) return error.message;
    throw error;
  }
  const count = openings === null ? 0 : countOpenings(entry, openings);
  if (typeof count === 'string') return count;
  const { sequence, revision, stream, type, occurred_at: occurredAt } = entry;
  // Their forms were checked above.
  if (!isCount(sequence ?? null) || !isCount(revision ?? null)) return 'its entry has no sequence and revision';
  if (typeof stream !== 'string' || typeof type !== 'string') return 'its entry has no stream and type';
  if (typeof occurredAt !== 'string') return 'its entry has no occurred_at';
  const ofEntry = { sequence: Number(sequence), revision: Number(revision), stream, type, occurredAt };
  return { ...ofEntry, leaf: leafHash(`{${hashed}}`), openings: count };
}

/** Returns how many references are opened, or what is wrong with an opening. */
function countOpenings(entry: JsonObject, openings: JsonObject): number | string {
  const names = Object.keys(openings);
  if (names.length === 0) return 0;
  const held = new Set(references(entry));
  for (const ref of names) {
    const opening = openings[ref];
    if (!isObject(opening) || Object.keys(opening).length !== 2)
      return `the opening of ${ref} is not a nonce and a value`;
    const { nonce, value } = opening;
    if (nonce === undefined || !isReference(nonce)) return `the nonce of ${ref} is not 32 bytes in hex`;
    if (typeof value !== 'string') return `the value of ${ref} is no text`;
    const opened = createHash('sha256').update(Buffer.from(nonce, 'hex')).update(value, 'utf8').digest('hex');
    if (opened !== ref) return `the opening of ${ref} does not open it`;
    if (!held.has(ref)) return `it opens ${ref}, which its entry does not hold`;
  }
  return names.length;
}

/** Yields the references of an entry: that of its source address, and members of its data that are named one. */
function* references(entry: JsonObject): Generator<string> {
  const address = entry['source_address_ref'];
  if (typeof address === 'string') yield address;
  yield* referencesIn(entry['data'] ?? null);
}

function* referencesIn(value: Json): Generator<string> {
  if (!isObject(value)) return;
  for (const [name, member] of Object.entries(value)) {
    if (/_refs?$/.test(name)) for (const text of isArray(member) ? member : [member]) if (isReference(text)) yield text;
    yield* referencesIn(member);
  }
}

/** Streams of claims on names, which may have had another owner before, between and after. */
const CLAIM = /^(username|email)-/;
/** In a device login's stream of older versions, the first event belongs to no account. */
const FIRST_ELSEWHERE = /^deviceSession-/;

export interface EntryOrder {
  /** Returns what is wrong with the entry's place; null if nothing is. */
  add(entry: JsonObject, checked: CheckedEntry, line: number): string | null;
  /** Returns the first line that says that it is another account's; null if there is none. */
  accountFault(account: string): { readonly line: number; readonly message: string } | null;
}

export function createEntryOrder(): EntryOrder {
  /** The last revision of each stream. */
  const revisions = new Map<string, number>();
  let named: { readonly account: string; readonly line: number } | null = null;
  let isSlice = false;

  function revisionFault({ stream, revision, type }: CheckedEntry): string | null {
    const last = revisions.get(stream);
    revisions.set(stream, revision);
    if (last === undefined) {
      const mayBegin =
        isSlice || revision === 0 || CLAIM.test(stream) || (FIRST_ELSEWHERE.test(stream) && revision === 1);
      return mayBegin ? null : `its stream ${stream} begins at revision ${revision}`;
    }
    if (revision === last + 1) return null;
    // Whoever lost a name and claims it again goes on behind the revisions of its owners between.
    if (CLAIM.test(stream) && revision > last && type === 'Claimed') return null;
    return `it has revision ${revision} of ${stream} in the place of ${last + 1}`;
  }

  return {
    add(entry, checked, line) {
      if (line === 1) isSlice = checked.sequence > 0;
      const account = accountNamed(entry, checked.stream);
      if (account !== null) {
        named ??= { account, line };
        if (account !== named.account) return `it is of account ${account}, and line ${named.line} of ${named.account}`;
      }
      return revisionFault(checked);
    },
    accountFault(account) {
      if (named === null || named.account === account) return null;
      return { line: named.line, message: `it is of account ${named.account}, and the checkpoint of ${account}` };
    },
  };
}

/** Returns the account that an entry names as its own; null if it names none. */
function accountNamed({ data }: JsonObject, stream: string): string | null {
  const [, own] = /^(?:account|usage)-(.+)$/s.exec(stream) ?? [];
  if (own !== undefined) return own;
  const account = isObject(data) ? data['account'] : null;
  return typeof account === 'string' ? account : null;
}
