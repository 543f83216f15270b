/**
 * A Git client built from bytes: objects, packs, command lists and their answers. For requests that git itself would
 * not send, and for pushes that start no process.
 */
import { createHash } from 'node:crypto';
import { deflateSync } from 'node:zlib';
import { deltaSize } from './raw-pack.ts';
import type { Account, Strata } from './strata.ts';

export const ZERO = '0'.repeat(40);
export const FLUSH = Buffer.from('0000');
export const DELIMITER = Buffer.from('0001');
export const EMPTY_TREE = '4b825dc642cb6eb9a060e54bf8d69288fbee4904';

export type WireObjectType = 'commit' | 'tree' | 'blob' | 'tag';

export interface WireObject {
  readonly type: WireObjectType;
  readonly bytes: Buffer;
  readonly id: string;
}

export function wireObject(type: WireObjectType, content: string | Buffer): WireObject {
  const bytes = Buffer.from(content);
  const id = createHash('sha1').update(`${type} ${bytes.length}\0`).update(bytes).digest('hex');
  return { type, bytes, id };
}

export function blob(content: string | Buffer): WireObject {
  return wireObject('blob', content);
}

export interface WireEntry {
  /** The stored form, e.g. `100644` or `40000`. */
  readonly mode: string;
  readonly name: string | Buffer;
  readonly id: string;
}

/** A tree with its entries in the order passed; git expects them sorted. */
export function tree(entries: readonly WireEntry[]): WireObject {
  const parts = entries.flatMap(({ mode, name, id }) => [
    Buffer.from(`${mode} `),
    Buffer.from(name),
    Buffer.from([0]),
    Buffer.from(id, 'hex'),
  ]);
  return wireObject('tree', Buffer.concat(parts));
}

const PERSON = 'A U Thor <author@example.org> 1700000000 +0000';

export function commit(message: string, treeId: string = EMPTY_TREE, parents: readonly string[] = []): WireObject {
  const lines = [`tree ${treeId}`, ...parents.map((id) => `parent ${id}`), `author ${PERSON}`, `committer ${PERSON}`];
  return wireObject('commit', `${lines.join('\n')}\n\n${message}\n`);
}

/** The type numbers of pack entries: gitformat-pack(5). */
export const PACK_TYPES = { commit: 1, tree: 2, blob: 3, tag: 4, 'ofs-delta': 6, 'ref-delta': 7 } as const;

/** One entry of a pack; `base` holds the bytes between the header and the data of a delta. */
export function packEntry(
  type: keyof typeof PACK_TYPES,
  content: Buffer,
  options: { readonly base?: Buffer; readonly sizeBytes?: number } = {},
): Buffer {
  let size = options.sizeBytes ?? content.length;
  const header = [(PACK_TYPES[type] << 4) | (size & 15)];
  size = Math.floor(size / 16);
  while (size > 0) {
    header[header.length - 1] = (header.at(-1) ?? 0) | 0x80;
    header.push(size & 0x7f);
    size = Math.floor(size / 128);
  }
  return Buffer.concat([Buffer.from(header), options.base ?? Buffer.alloc(0), deflateSync(content)]);
}

/** A pack of these entries; `count` may differ from the real number. */
export function packOfEntries(entries: readonly Buffer[], count: number = entries.length): Buffer {
  const head = Buffer.alloc(12);
  head.write('PACK', 'latin1');
  head.writeUInt32BE(2, 4);
  head.writeUInt32BE(count, 8);
  const body = Buffer.concat([head, ...entries]);
  return Buffer.concat([body, createHash('sha1').update(body).digest()]);
}

export function pack(objects: readonly WireObject[]): Buffer {
  return packOfEntries(objects.map(({ type, bytes }) => packEntry(type, bytes)));
}

/** A delta that makes the result of nothing of its base but its size. */
export function deltaOf(base: Buffer, result: Buffer): Buffer {
  const literals: Buffer[] = [];
  for (let at = 0; at < result.length; at += 127) {
    const literal = result.subarray(at, at + 127);
    literals.push(Buffer.from([literal.length]), literal);
  }
  return Buffer.concat([deltaSize(base.length), deltaSize(result.length), ...literals]);
}

export function packet(payload: string | Buffer): Buffer {
  const bytes = Buffer.from(payload);
  return Buffer.concat([Buffer.from((bytes.length + 4).toString(16).padStart(4, '0')), bytes]);
}

export interface WireCommand {
  readonly ref: string | Buffer;
  /** Absent: the ref must not exist yet. */
  readonly before?: string;
  /** Absent: the command deletes the ref. */
  readonly after?: string;
}

export const CAPABILITIES = 'report-status side-band-64k agent=test/1';

export function commandList(commands: readonly WireCommand[], capabilities: string = CAPABILITIES): Buffer {
  const packets = commands.map(({ ref, before = ZERO, after = ZERO }, index) => {
    const tail = index === 0 ? `\0 ${capabilities}\n` : '\n';
    return packet(Buffer.concat([Buffer.from(`${before} ${after} `), Buffer.from(ref), Buffer.from(tail)]));
  });
  return Buffer.concat([...packets, FLUSH]);
}

export interface WireAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Buffer;
}

/** The repository of a request, and the account that sends it. */
export interface WireTarget {
  readonly strata: Pick<Strata, 'url'>;
  readonly account: Pick<Account, 'username' | 'token'>;
  readonly name: string;
}

export function basicAuthorization({ username, token }: Pick<Account, 'username' | 'token'>): string {
  return `Basic ${Buffer.from(`${username}:${token}`).toString('base64')}`;
}

export interface WireOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** Sends a POST to one of a repository's services. Rejects when the connection breaks. */
export async function postService(
  target: WireTarget,
  service: 'git-upload-pack' | 'git-receive-pack',
  body: Buffer,
  options: WireOptions = {},
): Promise<WireAnswer> {
  const { strata, account, name } = target;
  const response = await fetch(`${strata.url}/r/${account.username}/${name}.git/${service}`, {
    method: 'POST',
    headers: {
      Authorization: basicAuthorization(account),
      'Content-Type': `application/x-${service}-request`,
      ...options.headers,
    },
    body: new Uint8Array(body),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  const bytes = Buffer.from(await response.arrayBuffer());
  return { status: response.status, headers: response.headers, bytes };
}

export interface WireReport {
  readonly status: number;
  /** `ok`, or the reason why unpacking failed; null when there was no report. */
  readonly unpack: string | null;
  /** By ref: `ok`, or the reason of the refusal. */
  readonly refs: ReadonlyMap<string, string>;
  /** What git shows the user after `remote:`, including fatal errors; the whole body when the status is not 200. */
  readonly remote: string;
}

/** Pushes these objects, or a prebuilt pack. */
export async function wirePush(
  target: WireTarget,
  commands: readonly WireCommand[],
  packed: readonly WireObject[] | Buffer | null,
  options: WireOptions & { readonly capabilities?: string } = {},
): Promise<WireReport> {
  const following = packed === null ? Buffer.alloc(0) : Buffer.isBuffer(packed) ? packed : pack(packed);
  const body = Buffer.concat([commandList(commands, options.capabilities), following]);
  return reportOf(await postService(target, 'git-receive-pack', body, options));
}

/** Parses the answer to a push, with or without a side band. */
export function reportOf({ status, bytes }: WireAnswer): WireReport {
  if (status !== 200) return { status, unpack: null, refs: new Map(), remote: bytes.toString('utf8') };
  const remote: string[] = [];
  const report: Buffer[] = [];
  for (const payload of packetsOf(bytes)) {
    const band = payload[0];
    if (band === 1) report.push(payload.subarray(1));
    else if (band === 2 || band === 3) remote.push(payload.subarray(1).toString('utf8'));
    else if (payload.toString('utf8').startsWith('ERR ')) remote.push(payload.toString('utf8'));
    else report.push(packet(payload));
  }
  const lines = packetsOf(Buffer.concat(report)).map((line) => line.toString('utf8').trimEnd());
  const refs = new Map<string, string>();
  let unpack: string | null = null;
  for (const line of lines) {
    const [, word = '', name = '', reason = ''] = /^(unpack|ok|ng) (\S+) ?(.*)$/s.exec(line) ?? [];
    if (word === 'unpack') unpack = `${name} ${reason}`.trim();
    else if (word !== '') refs.set(name, word === 'ok' ? 'ok' : reason);
  }
  return { status, unpack, refs, remote: remote.join('') };
}

/** Returns the payloads of the data packets; stops at bytes that are no pkt-line. Shares no code with the server. */
function packetsOf(bytes: Buffer): readonly Buffer[] {
  const payloads: Buffer[] = [];
  for (let at = 0; at + 4 <= bytes.length; ) {
    const length = Number.parseInt(bytes.toString('latin1', at, at + 4), 16);
    if (Number.isNaN(length)) break;
    if (length > 4) payloads.push(bytes.subarray(at + 4, at + length));
    at += Math.max(4, length);
  }
  return payloads;
}

/** Returns the refs as `git ls-remote` lists them over protocol v2, without HEAD. */
export async function wireRefs(target: WireTarget, options: WireOptions = {}): Promise<ReadonlyMap<string, string>> {
  const body = Buffer.concat([packet('command=ls-refs\n'), DELIMITER, packet('ref-prefix refs/\n'), FLUSH]);
  const headers = { 'Git-Protocol': 'version=2', ...options.headers };
  const answer = await postService(target, 'git-upload-pack', body, { ...options, headers });
  if (answer.status !== 200) throw new Error(`ls-refs answered ${answer.status}: ${answer.bytes.toString('utf8')}`);
  return new Map(
    packetsOf(answer.bytes).map((line): [string, string] => {
      const text = line.toString('utf8').trimEnd();
      return [text.slice(41), text.slice(0, 40)];
    }),
  );
}

/**
 * Fetches objects by id, with further request lines (`shallow`, `deepen`). Returns the pack, or the answer as text when
 * it holds no pack.
 */
export async function wireFetch(
  target: WireTarget,
  wants: string | readonly string[],
  version: 0 | 2,
  more: readonly string[] = [],
): Promise<{ readonly pack: Buffer } | { readonly refused: string }> {
  const [first = '', ...others] = [wants].flat();
  const wanted = version === 2 ? [`want ${first}`] : [`want ${first} side-band-64k no-progress ofs-delta filter`];
  const lines = [...wanted, ...others.map((id) => `want ${id}`), ...more].map((line) => packet(`${line}\n`));
  const body =
    version === 2
      ? [packet('command=fetch\n'), DELIMITER, packet('no-progress\n'), ...lines, packet('done\n'), FLUSH]
      : [...lines, FLUSH, packet('done\n')];
  const headers = version === 2 ? { 'Git-Protocol': 'version=2' } : {};
  const answer = await postService(target, 'git-upload-pack', Buffer.concat(body), { headers });
  const payloads = packetsOf(answer.bytes);
  const packed = Buffer.concat(payloads.filter((payload) => payload[0] === 1).map((payload) => payload.subarray(1)));
  if (answer.status === 200 && packed.subarray(0, 4).toString('latin1') === 'PACK') return { pack: packed };
  return { refused: `${answer.status} ${answer.bytes.toString('utf8')}` };
}
