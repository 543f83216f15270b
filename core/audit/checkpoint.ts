/**
 * Checkpoints: the signed head of an account's log, as a signed note (C2SP tlog-checkpoint and signed-note).
 *
 * Invariants: a checkpoint has no extension lines, and one signature. Its text is signed, so its form never changes.
 */
import type { Digest } from '../kernel/digest.ts';
import type { AccountId } from '../kernel/ids.ts';
import type { Hash } from '../ports/account-log.ts';
import { base64OfHex, hexOfBase64 } from './base64.ts';

/** What a checkpoint says of a log. */
export interface TreeHead {
  /** How many entries the log has. */
  readonly size: number;
  readonly root: Hash;
}

export interface Checkpoint extends TreeHead {
  /** The log's name: `<host>/log/<account id>`. */
  readonly origin: string;
}

/** Returns the name of an account's log in checkpoints. `host` is the key's name. */
export function originOf(host: string, account: AccountId): string {
  return `${host}/log/${account}`;
}

/** Returns the text that is signed. */
export function checkpointText({ origin, size, root }: Checkpoint): string {
  return `${origin}\n${size}\n${base64OfHex(root)}\n`;
}

/** The algorithm byte of Ed25519 in the signed-note form. */
const ED25519 = '01';

/** A key that signs checkpoints, without its private half. */
export interface VerifierKey {
  /** The host of the service at its first start. */
  readonly name: string;
  /** The 32 bytes of an Ed25519 public key (RFC 8032), hex. */
  readonly publicKey: string;
}

/** Returns the first 4 bytes of SHA-256(name || 0x0A || 0x01 || public key), hex: how a signature names its key. */
export function keyIdOf(digest: Digest, { name, publicKey }: VerifierKey): string {
  const bytes = [...new TextEncoder().encode(`${name}\n`), ...bytesOfHex(`${ED25519}${publicKey}`)];
  return digest.sha256OfBytes(Uint8Array.from(bytes)).slice(0, 8);
}

/** Returns the key in the form that verifiers take: `<name>+<key id>+<base64 of algorithm and key>`. */
export function verifierKeyText(digest: Digest, key: VerifierKey): string {
  return `${key.name}+${keyIdOf(digest, key)}+${base64OfHex(`${ED25519}${key.publicKey}`)}`;
}

/** Returns the signed note: the text, an empty line, and the signature's line. `signature` is hex. */
export function signedNote(digest: Digest, checkpoint: Checkpoint, key: VerifierKey, signature: string): string {
  const line = base64OfHex(`${keyIdOf(digest, key)}${signature}`);
  return `${checkpointText(checkpoint)}\n— ${key.name} ${line}\n`;
}

const NOTE = /^([^\n]+)\n(0|[1-9]\d{0,15})\n([A-Za-z0-9+/]{43}=)\n\n— /;

/** Reads what a checkpoint of our own says, without checking its signature. Throws TypeError for any other text. */
export function readCheckpoint(note: string): Checkpoint {
  const [, origin = '', size = '', root = ''] = NOTE.exec(note) ?? [];
  if (origin === '') throw new TypeError('Not a checkpoint');
  return { origin, size: Number(size), root: hexOfBase64(root) as Hash };
}

/** How a signature names its key. */
export interface Signer {
  readonly name: string;
  readonly keyId: string;
}

/**
 * Returns the name and the id of the key by which a checkpoint of our own is signed. Throws TypeError for another text.
 */
export function signerOf(note: string): Signer {
  const [, name = '', signature = ''] = /\n\n— (\S+) ([A-Za-z0-9+/]+=*)\n$/.exec(note) ?? [];
  if (name === '') throw new TypeError('Not a checkpoint');
  return { name, keyId: hexOfBase64(signature).slice(0, 8) };
}

function bytesOfHex(hex: string): Uint8Array {
  return Uint8Array.from({ length: hex.length / 2 }, (_, at) => Number.parseInt(hex.slice(2 * at, 2 * at + 2), 16));
}
