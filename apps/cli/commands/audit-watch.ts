/**
 * `strata audit watch`: keeps each checkpoint that it saw, asks for the proof that the next one continues it, and
 * verifies the entries between the two.
 *
 * Invariants: a folder is of one log. A checkpoint is kept only if it continues the last one, and the service shows the
 * entries that it signs; one that does not is kept apart, as evidence, and the command fails. Nothing that the service
 * says names a file. A folder knows the key in force of its log: another one is trusted only once an entry endorses it,
 * or where a key was revoked, by --keys.
 */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Checkpoint, parseCheckpoint, parseKeys, type VerifierKey } from '../../verifier/checkpoint.ts';
import { readCheckpoint, readKeys } from '../../verifier/file.ts';
import { createKeyChain, type KeyChain } from '../../verifier/keys.ts';
import { base64Of, emptyRange, hashOfBase64, provedPrefix, type Range } from '../../verifier/tree.ts';
import { ApiError, type Client } from '../client/client.ts';
import { readText } from '../client/transport.ts';
import type { Context, Given } from '../session/context.ts';
import { codeOf, Failure, usageFailure } from '../session/failure.ts';
import { type Host, signedIn } from '../session/host.ts';
import { reading } from './audit.ts';
import { entriesFault } from './watched-entries.ts';

export async function watch(context: Context, given: Given): Promise<void> {
  const { client, host } = await signedIn(context);
  const folder = resolve(context.folder, given.text('folder') ?? folderOf(host));
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const keysFile = given.text('keys');
  const watched: Watched = {
    context,
    client,
    folder,
    keys: keysFile === undefined ? null : await reading(resolve(context.folder, keysFile), readKeys),
  };
  const every = given.number('every');
  for (;;) {
    await look(watched, every !== undefined);
    if (every === undefined) return;
    await sleep(every * 1_000);
  }
}

interface Watched {
  readonly context: Context;
  readonly client: Client;
  readonly folder: string;
  /** Null: that of the folder, or the first one that the service names. */
  readonly keys: readonly VerifierKey[] | null;
}

function folderOf({ configFile, baseUrl }: Host): string {
  if (configFile === null) throw usageFailure('There is no home folder to keep checkpoints in', 'Give --folder');
  return join(dirname(configFile), 'checkpoints', encodeURIComponent(new URL(baseUrl).host));
}

async function look(watched: Watched, goesOn: boolean): Promise<void> {
  try {
    await keepLatest(watched);
  } catch (error) {
    // A service that is down contradicts nothing.
    if (!goesOn || error instanceof Failure) throw error;
    watched.context.terminal.warn(error instanceof Error ? error.message : String(error));
  }
}

async function keepLatest(watched: Watched): Promise<void> {
  const { context, folder, client } = watched;
  const note = await textOf(client, '/v1/account/checkpoints/latest');
  const checkpoint = parseCheckpoint(note);
  if (checkpoint === null) throw new Failure(1, 'The service answers with no checkpoint of an account');
  const last = await lastKept(folder);
  const known = await knownKeys(watched, last !== null);
  const chain = createKeyChain({ named: known.named, inForce: known.inForce, revoked: null });
  const fault = await logFault(client, { last, next: checkpoint, chain });
  if (fault !== null) {
    const evidence = join(
      folder,
      `contradicting-${checkpoint.size}-${new Date().toISOString().replaceAll(':', '')}.txt`,
    );
    await writeFile(evidence, note, { flag: 'wx', mode: 0o600 });
    const accepted = last === null ? null : await acceptedLoss(client, last);
    const changed = accepted === null ? fault : `${fault}; ${accepted}`;
    throw new Failure(1, `THE LOG WAS CHANGED: ${changed}`, `Keep ${folder}: it holds the proof, and ${evidence}`);
  }
  const { size, root, origin } = checkpoint;
  const used = chain.inForce()?.key.line;
  const keys =
    used === undefined ? (known.kept ?? known.named.map(({ line }) => `${line}\n`).join('')) : inForceText(used);
  if (last?.size !== size) await writeFile(join(folder, `${size}.txt`), note, { flag: 'wx', mode: 0o600 });
  if (keys !== known.kept) await writeFile(join(folder, KEYS_FILE), keys, { mode: 0o600 });
  if (context.globals.json) context.terminal.out(`${JSON.stringify({ log: origin, size, root: base64Of(root) })}\n`);
  else
    context.terminal.out(
      `${origin}: ${size} entries${last === null ? '' : `, which continue the ${last.size} kept`}\n`,
    );
}

/** Losses of one log that are looked through. Internal: a log is restored a few times in its life. */
const LOSSES_READ = 100;

interface Looked {
  readonly last: Checkpoint | null;
  readonly next: Checkpoint;
  /** Gets the entries between the two. */
  readonly chain: KeyChain;
}

/**
 * Returns why the checkpoint does not continue the last one, what is wrong with the entries since, or with the key that
 * signed it; null if nothing is.
 */
async function logFault(client: Client, { last, next, chain }: Looked): Promise<string | null> {
  const before = last === null ? emptyRange(0) : await continued(client, last, next);
  if (typeof before === 'string') return before;
  const fault = before === null ? null : await entriesFault(client, before, { checkpoint: next, chain });
  if (fault !== null) return fault;
  if (last === null && !chain.isRooted()) return 'its first key is not one of those that are trusted';
  const signing = chain.signing(next, { begin: 0, end: next.size });
  return signing.state === 'signed' ? null : signing.why;
}

/** Returns the leaves from before, null if there are no others now, or why the log does not continue them. */
async function continued(client: Client, last: Checkpoint, next: Checkpoint): Promise<Range | string | null> {
  if (last.origin !== next.origin) return `the checkpoint is of ${next.origin}, and those kept are of ${last.origin}`;
  if (next.size < last.size) return `it has ${next.size} entries, and had ${last.size}`;
  if (next.size === last.size)
    return next.root === last.root ? null : `its ${next.size} entries are not those that it had`;
  if (last.size === 0) return emptyRange(0);
  const proof = await proofOf(client, last.size, next.size);
  return (
    (proof === null ? null : provedPrefix(last, next, proof)) ??
    `nothing proves that its ${next.size} entries begin with the ${last.size} kept`
  );
}

/**
 * Returns what the log says of a checkpoint that it does not continue: the operator accepted the loss. Null if it says
 * nothing, or cannot be read.
 */
async function acceptedLoss(client: Client, { size, root }: Checkpoint): Promise<string | null> {
  try {
    const { events } = await client.call('listAccountEvents', { query: { type: 'LogTailLost', limit: LOSSES_READ } });
    const found = events.find(({ entry: { data } }) => data['size'] === size && data['root'] === base64Of(root));
    if (found === undefined) return null;
    const { sequence, data } = found.entry;
    return `entry ${sequence} (LogTailLost) accepts that loss: ${JSON.stringify(data['reason'])}`;
  } catch (error) {
    // The fault itself is known, and matters more.
    if (error instanceof ApiError) return null;
    throw error;
  }
}

async function proofOf(client: Client, from: number, to: number): Promise<readonly string[] | null> {
  const { hashes } = await client.call('getConsistencyProof', { query: { from, to } });
  const parsed = hashes.map(hashOfBase64);
  return parsed.every((hash) => hash !== null) ? parsed : null;
}

const KEYS_FILE = 'keys';
/** Stands above the key that an endorsement put in force: no other key is trusted then, given or not. */
const IN_FORCE = '# The log endorses this key';

function inForceText(line: string): string {
  return `${IN_FORCE}\n${line}\n`;
}

interface KnownKeys {
  readonly named: readonly VerifierKey[];
  readonly inForce: VerifierKey | null;
  /** What the folder's file holds; null if there is none. */
  readonly kept: string | null;
}

/** Nothing that the service names is trusted but the first key, and that only where nothing was kept yet. */
async function knownKeys({ client, folder, keys }: Watched, isUsed: boolean): Promise<KnownKeys> {
  const file = join(folder, KEYS_FILE);
  const kept = await readFile(file, 'utf8').catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return null;
    throw new Failure(1, `${file} cannot be read: ${codeOf(error)}`);
  });
  const held = keysIn(kept ?? '');
  const inForce = kept?.startsWith(`${IN_FORCE}\n`) === true ? (held[0] ?? null) : null;
  if (keys !== null || kept !== null) return { named: [...held, ...(keys ?? [])], inForce, kept };
  if (isUsed) throw new Failure(1, `${file} is gone: it names the keys that are trusted`, 'Give --keys');
  const [first] = keysIn(await textOf(client, '/.well-known/strata-log-keys'));
  return { named: first === undefined ? [] : [first], inForce, kept };
}

/** Returns none of a text that is no list of keys. */
function keysIn(text: string): readonly VerifierKey[] {
  try {
    return parseKeys(text);
  } catch (error) {
    if (error instanceof SyntaxError) return [];
    throw error;
  }
}

async function lastKept(folder: string): Promise<Checkpoint | null> {
  const sizes = (await readdir(folder)).flatMap((name) => {
    const [, size] = /^(\d{1,15})\.txt$/.exec(name) ?? [];
    return size === undefined ? [] : [Number(size)];
  });
  if (sizes.length === 0) return null;
  const largest = sizes.reduce((a, b) => Math.max(a, b));
  return reading(join(folder, `${largest}.txt`), readCheckpoint);
}

async function textOf(client: Client, target: string): Promise<string> {
  const answer = await client.send({ method: 'GET', target });
  const text = await readText(answer.body);
  if (answer.status !== 200) throw new ApiError(answer.status, text, answer.header('x-request-id'));
  return text;
}
