/**
 * Signed notes (https://c2sp.org/signed-note) and the checkpoints in them (https://c2sp.org/tlog-checkpoint).
 *
 * Invariants: a note is signed if at least one known key signed it, and no signature under the name and hash of a
 * known key is wrong. A checkpoint's origin is the key's name, then `/log/` and the id of the account. A signature by
 * nobody who is known says nothing: neither that the note is true, nor that it is not.
 */
import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto';
import { type Hash, hashOfBase64 } from './tree.ts';

const ED25519 = 1;
/** What comes before the key in its DER form: RFC 8410, section 4. */
const DER_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');
const SIGNATURES_MAX = 100;

export interface VerifierKey {
  /** The whole text, as the service's list has it. */
  readonly line: string;
  readonly name: string;
  /** Eight digits of hex. */
  readonly hash: string;
  /** Null for a kind of key that this verifier does not know: it knows Ed25519. */
  readonly key: KeyObject | null;
}

/** Reads `<name>+<hash>+<base64>`, whose name is printable ASCII without `+`; null for any other text. */
export function parseKey(text: string): VerifierKey | null {
  const [, name, hash, encoded] = /^([!-*,-~]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+=*)$/.exec(text) ?? [];
  if (name === undefined || hash === undefined || encoded === undefined) return null;
  const bytes = Buffer.from(encoded, 'base64');
  if (bytes.length < 2 || bytes.toString('base64') !== encoded) return null;
  const named = createHash('sha256').update(`${name}\n`).update(bytes).digest('hex');
  if (named.slice(0, 8) !== hash) return null;
  if (bytes[0] !== ED25519) return { line: text, name, hash, key: null };
  if (bytes.length !== 33) return null;
  const key = createPublicKey({ key: Buffer.concat([DER_PREFIX, bytes.subarray(1)]), format: 'der', type: 'spki' });
  return { line: text, name, hash, key };
}

/** Reads a file of keys, one a line; throws SyntaxError that names the line which is not a key. */
export function parseKeys(text: string): readonly VerifierKey[] {
  const lines = text.split('\n').map((line) => line.trim());
  return lines.flatMap((line, index) => {
    if (line === '' || line.startsWith('#')) return [];
    const key = parseKey(line);
    if (key === null) throw new SyntaxError(`line ${index + 1} is no key <name>+<hash>+<base64>`);
    return [key];
  });
}

interface Signature {
  readonly name: string;
  readonly hash: string;
  readonly bytes: Buffer;
}

export interface Note {
  /** With its last line feed; the signatures are of these bytes. */
  readonly text: string;
  readonly signatures: readonly Signature[];
}

/** Null for what is no signed note. */
export function parseNote(note: string): Note | null {
  const split = note.lastIndexOf('\n\n');
  if (split < 0 || !note.endsWith('\n') || hasControls(note)) return null;
  const lines = note.slice(split + 2, -1).split('\n');
  const signatures = lines.map(parseSignature);
  if (signatures.length > SIGNATURES_MAX || !signatures.every((signature) => signature !== null)) return null;
  return { text: note.slice(0, split + 1), signatures };
}

function hasControls(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 0x20 && code !== 0x0a) return true;
  }
  return false;
}

function parseSignature(line: string): Signature | null {
  const [, name, encoded] = /^\u2014 ([!-*,-~]+) ([A-Za-z0-9+/]+=*)$/.exec(line) ?? [];
  if (name === undefined || encoded === undefined) return null;
  const bytes = Buffer.from(encoded, 'base64');
  if (bytes.length < 5 || bytes.toString('base64') !== encoded) return null;
  return { name, hash: bytes.subarray(0, 4).toString('hex'), bytes: bytes.subarray(4) };
}

/** What the signatures of a note say by the keys that are known. */
export type Signing =
  | { readonly state: 'signed'; readonly signers: readonly VerifierKey[] }
  | { readonly state: 'wrong' | 'unknown'; readonly why: string };

export function signingOf(note: Note, keys: readonly VerifierKey[]): Signing {
  const signers: VerifierKey[] = [];
  let unknown = 'none of the given keys signed it';
  for (const { name, hash, bytes } of note.signatures) {
    for (const known of keys.filter((key) => key.name === name && key.hash === hash)) {
      if (known.key === null) unknown = `${name}+${hash} is a kind of key that this verifier does not know`;
      else if (verify(null, Buffer.from(note.text), known.key, bytes)) signers.push(known);
      else return { state: 'wrong', why: `the signature of ${name}+${hash} is wrong` };
    }
  }
  return signers.length > 0 ? { state: 'signed', signers } : { state: 'unknown', why: unknown };
}

export interface Checkpoint {
  readonly origin: string;
  readonly account: string;
  readonly size: number;
  readonly root: Hash;
  readonly note: Note;
}

/** Null for what is no checkpoint of an account's log. */
export function parseCheckpoint(text: string): Checkpoint | null {
  const note = parseNote(text);
  const [origin, size, encoded, end, ...more] = note?.text.split('\n') ?? [];
  if (note === null || origin === undefined || size === undefined || end !== '' || more.length > 0) return null;
  const [, account] = /^[!-~]+\/log\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/.exec(origin) ?? [];
  const root = hashOfBase64(encoded ?? '');
  if (account === undefined || root === null || !/^(0|[1-9]\d{0,14})$/.test(size)) return null;
  return { origin, account, size: Number(size), root, note };
}

/** Whether a key of its log signed a checkpoint. */
export function checkpointSigning({ note, origin }: Checkpoint, keys: readonly VerifierKey[]): Signing {
  const signing = signingOf(note, keys);
  if (signing.state !== 'signed') return signing;
  const isOwn = signing.signers.some(({ name }) => origin.startsWith(`${name}/log/`));
  return isOwn ? signing : { state: 'wrong', why: `its keys are not those of ${origin}` };
}
