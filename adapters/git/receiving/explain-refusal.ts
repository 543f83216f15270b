/**
 * Says of an object that git refused or misses what it is, and which commit and path of the pack lead to it, so that
 * its owner finds it. git index-pack names no more than its id, and of a tag not even that.
 *
 * Invariants: an explanation never accepts anything, and never fails a push that is refused anyway: the refusal then
 * stays as it was. It costs at most as much as a pack that is accepted, and then a bounded walk.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { PackRefusal } from '../../../core/git/pack-refusal.ts';
import { OBJECT_ID_PATTERN, type ObjectId, objectId, PACK_CHECKSUM_PATTERN } from '../../../core/kernel/ids.ts';
import { createGitObjects, lines } from '../packs/git-objects.ts';
import { createObjectSource, type ObjectSource, openFreshPack } from '../packs/object-source.ts';
import type { PackMemory } from '../packs/pack-file.ts';
import type { Git, GitCommand, ObjectView } from '../process/git-commands.ts';
import { findReferrer } from './find-referrer.ts';
import { boundBy, counted, type QuarantineFolder } from './index-pack.ts';
import type { PackAdmission } from './push-memory.ts';
import type { SentPack } from './sent-pack.ts';

/**
 * This many commits, trees and tags each, of a refused pack among which the server looks for what leads to the refused
 * object.
 */
export const EXPLAINED_OBJECTS_MAX = 200_000;
/** How long the server looks for what leads to a refused object. */
export const EXPLAINING_MS_MAX = 30_000;
/** How much of a refused object's path the server tells. */
export const EXPLAINED_PATH_LENGTH_MAX = 300;

export interface Explaining {
  readonly git: Git;
  readonly memory: PackMemory;
  readonly folder: QuarantineFolder;
  /** The pack's objects only. */
  readonly alone: ObjectView;
  /** The pack's objects and the committed ones. */
  readonly whole: ObjectView;
  /** The admission of the process that refused it. */
  readonly admission: PackAdmission;
  readonly signal: AbortSignal;
}

/** Returns the refusal with kind, commit and path in its detail, as far as they are found. */
export async function explainRefusal(
  explaining: Explaining,
  sent: SentPack,
  refusal: PackRefusal,
): Promise<PackRefusal> {
  try {
    await indexAgain(explaining, sent);
    const signal = AbortSignal.any([explaining.signal, AbortSignal.timeout(EXPLAINING_MS_MAX)]);
    const explain = refusal.refused === 'pack-not-connected' ? missingDetail : explainedDetail;
    const detail = await explain({ ...explaining, signal }, refusal.detail);
    return detail === null ? refusal : { ...refusal, detail };
  } catch {
    // The pack cannot be read, which is no news of a refused one.
    explaining.signal.throwIfAborted();
    return refusal;
  }
}

/** Writes an index of the whole pack without a check, unless git wrote one before it found the fault. */
async function indexAgain({ git, folder, whole, admission, signal }: Explaining, sent: SentPack): Promise<void> {
  const bytes = await sent.again(join(await folder(), 'pack'));
  if (bytes === null) return;
  const received = counted(bytes);
  const command: GitCommand = {
    args: ['index-pack', '--stdin', '--fix-thin', '--threads=1'],
    view: whole,
    config: [['core.fsync', 'none']],
    signal,
    ...boundBy(admission, received.bytesSoFar),
  };
  for await (const _line of git.stream(command, received.bytes)) continue;
}

/** How a detail that names an object begins: pack-refusal.ts. */
const MISSING = new RegExp(`^object (${OBJECT_ID_PATTERN}) is referred to`);
const NAMED = new RegExp(`^object (${OBJECT_ID_PATTERN}): `);

async function missingDetail(explaining: Explaining, detail: string): Promise<string | null> {
  const missing = MISSING.exec(detail)?.[1];
  const source = await sourceOf(explaining);
  if (missing === undefined || source === null) return null;
  const kinds = await kindsOf(explaining, null);
  const referrer = await findReferrer(source, kinds, objectId(missing), explaining.signal);
  if (referrer === null) return null;
  const { kind, id, as } = referrer;
  if (as !== 'entry') return `${detail} (a ${kind}: ${as} ${id})`;
  const place = await placeOf(explaining, id, kinds.commits);
  const name = referrer.name.slice(0, EXPLAINED_PATH_LENGTH_MAX);
  if (place === null) return `${detail} (a ${kind}: ${printable(name)} in tree ${id})`;
  const path = place.path === '' ? name : `${place.path}/${name}`.slice(0, EXPLAINED_PATH_LENGTH_MAX);
  return `${detail} (a ${kind}: ${printable(path)} in commit ${place.commit})`;
}

async function explainedDetail(explaining: Explaining, detail: string): Promise<string | null> {
  const named = NAMED.exec(detail)?.[1] ?? null;
  const { kind, commits, tags } = await kindsOf(explaining, named);
  if (named === null) {
    const tag = await unparsableTag(explaining, tags);
    return tag === null ? null : `object ${tag}: cannot be parsed as a tag`;
  }
  if (kind === 'commit' || kind === 'tag') return `${detail} (a ${kind})`;
  const place = await placeOf(explaining, named, commits);
  if (place === null) return kind === null ? null : `${detail} (a ${kind})`;
  const path = place.path === '' ? 'the root folder' : place.path.slice(0, EXPLAINED_PATH_LENGTH_MAX);
  return `${detail} (a ${kind ?? 'blob'}: ${printable(path)} in commit ${place.commit})`;
}

interface Kinds {
  /** The type of the named object; null if it is not in the pack. */
  readonly kind: string | null;
  /** At most `EXPLAINED_OBJECTS_MAX` of each. */
  readonly commits: readonly ObjectId[];
  readonly trees: readonly ObjectId[];
  readonly tags: readonly ObjectId[];
}

async function kindsOf({ git, alone, signal }: Explaining, named: string | null): Promise<Kinds> {
  const args = ['cat-file', '--batch-all-objects', '--unordered', '--buffer'];
  const command: GitCommand = { args: [...args, '--batch-check=%(objectname) %(objecttype)'], view: alone, signal };
  const found = { commit: new Array<ObjectId>(), tree: new Array<ObjectId>(), tag: new Array<ObjectId>() };
  let kind: string | null = null;
  for await (const line of linesOf(git.stream(command, lines([])))) {
    const [id = '', type = ''] = line.split(' ');
    if (id === named) kind = type;
    if (type !== 'commit' && type !== 'tree' && type !== 'tag') continue;
    if (found[type].length < EXPLAINED_OBJECTS_MAX) found[type].push(objectId(id));
  }
  return { kind, commits: found.commit, trees: found.tree, tags: found.tag };
}

/** The first of these commits, in the order of the pack, whose files and folders hold the object, and its path. */
async function placeOf(
  { git, whole, signal }: Explaining,
  id: string,
  commits: readonly string[],
): Promise<{ readonly commit: string; readonly path: string } | null> {
  const args = ['rev-list', '--objects', '--in-commit-order', '--no-walk=unsorted', '--missing=allow-any', '--stdin'];
  let commit: string | null = null;
  for await (const line of linesOf(git.stream({ args, view: whole, signal }, lines(commits)))) {
    // git prints a space after the id of a file or folder, even of a root folder, and none after that of a commit.
    if (line.length === id.length) commit = line;
    else if (line.startsWith(id)) return commit === null ? null : { commit, path: line.slice(id.length + 1) };
  }
  return null;
}

/** What git needs to find at the start of a tag (parse_tag_buffer). */
const TAG_START = new RegExp(`^object ${OBJECT_ID_PATTERN}\\ntype (?:commit|tree|blob|tag)\\ntag [^\\n]*\\n`);

async function unparsableTag(explaining: Explaining, tags: readonly ObjectId[]): Promise<ObjectId | null> {
  const source = await sourceOf(explaining);
  if (source === null) return null;
  for (const id of tags) {
    const tag = await source.read(id);
    if (tag !== null && !TAG_START.test(tag.bytes.toString('latin1'))) return id;
  }
  return null;
}

const INDEX_NAME = new RegExp(`^pack-(${PACK_CHECKSUM_PATTERN})\\.idx$`);

/** The objects of the pack; null if it has no index. */
async function sourceOf({ git, memory, folder, whole }: Explaining): Promise<ObjectSource | null> {
  const packs = join(await folder(), 'pack');
  const index = (await readdir(packs)).find((file) => file.endsWith('.idx'));
  const name = INDEX_NAME.exec(index ?? '')?.[1];
  if (name === undefined) return null;
  const file = (extension: string) => join(packs, `pack-${name}.${extension}`);
  const pack = await openFreshPack(memory, name, file('pack'), file('idx'));
  return createObjectSource([pack], createGitObjects(git, whole));
}

async function* linesOf(chunks: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of chunks) {
    const whole = (rest + chunk.toString('latin1')).split('\n');
    rest = whole.pop() ?? '';
    yield* whole;
  }
}

/** A path may hold anything; it is shown on a terminal. */
function printable(path: string): string {
  return path.replace(/[^\x20-\x7e]+/g, '?');
}
