/**
 * Checks a pack while or after it arrives: when git is started, with which memory, and again with more.
 *
 * Invariants: no process and no share of memory waits for a client that sends slowly; a pack is refused for its
 * memory only after it had all that one pack may have; what was taken is given back on every end.
 */
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { PackRefusal } from '../../../core/git/pack-refusal.ts';
import type { FairSlots } from '../../../core/kernel/fair-slots.ts';
import { ObjectDatabaseError } from '../../../core/ports/object-database.ts';
import type { Git, ObjectView } from '../process/git-commands.ts';
import { unlessAborted } from '../process/unless-aborted.ts';
import { createFastPack, heldBytes, holdBytes, holdPack } from './held-pack.ts';
import { IncomingFullError, type IncomingPush } from './incoming-bytes.ts';
import { type IndexedPack, indexPack, type QuarantineFolder } from './index-pack.ts';
import { type PackInput, PackTooLargeError, tooLarge } from './pack-input.ts';
import type { PackAdmission, PushMemory } from './push-memory.ts';
import { arrivingPack, type SentPack, wholePack } from './sent-pack.ts';

export interface ArrivingPack {
  readonly git: Git;
  readonly memory: PushMemory;
  readonly view: ObjectView;
  /** The quarantine's folder: git's files come into its folder `pack`. A pack that is checked in process needs none. */
  readonly folder: QuarantineFolder;
  readonly input: PackInput;
  readonly incoming: IncomingPush;
  readonly packSizeBytesMax: number;
  readonly signal: AbortSignal;
  /** Checks a pack that is whole and in memory; null when git has to. Rejects when the signal is aborted. */
  readonly checkSmall: (pack: Buffer) => Promise<IndexedPack | null>;
  /** Called when the whole pack was received. It may be called again. */
  readonly onEndOfInput: () => void;
  /** Adds to a refusal what is found about the refused object. */
  readonly explain: (sent: SentPack, refusal: PackRefusal, admission: PackAdmission) => Promise<PackRefusal>;
}

const ENDS_TOO_EARLY: PackRefusal = { refused: 'pack-broken', detail: 'the pack ends too early' };
const TAKES_TOO_MUCH: PackRefusal = {
  refused: 'pack-too-costly',
  detail:
    'the pack takes more memory than a push may; where large files changed, git -c core.bigFileThreshold=16m push sends them whole',
};

/**
 * Writes pack and index into the quarantine's folder, unless they stay in memory. Resolves with the pack, or the
 * refusal.
 */
export async function indexArriving(arriving: ArrivingPack): Promise<IndexedPack | PackRefusal> {
  const { input, memory, signal } = arriving;
  try {
    if (!input.ended()) return await indexHeld(arriving);
    if (input.isTooShort()) return ENDS_TOO_EARLY;
    arriving.onEndOfInput();
    const checked = await arriving.checkSmall(input.head);
    if (checked !== null) return checked;
    const inMemory = wholePack(async function* () {
      yield input.head;
    });
    return await indexWhole(arriving, inMemory, memory.small(input.objectCount));
  } catch (error) {
    if (error instanceof PackTooLargeError) return tooLarge(arriving.packSizeBytesMax);
    if (!(error instanceof IncomingFullError)) throw error;
    await unlessAborted(signal, () => input.drain());
    return error.refusal;
  }
}

/** Holds the pack until it is whole, or its client has proved fast. */
async function indexHeld(arriving: ArrivingPack): Promise<IndexedPack | PackRefusal> {
  const { input, memory, incoming, signal } = arriving;
  const folder = await arriving.folder();
  const start = join(folder, 'held-start');
  const whole = join(folder, 'held');
  const admission = memory.large(input.objectCount);
  let release: (() => void) | null = null;
  const isReady = () => {
    if (!signal.aborted) release = admission.slots.take(arriving.view.key);
    return release !== null;
  };
  try {
    const holding = { onBytes: incoming.add, isReady };
    const isWhole = await unlessAborted(signal, () => holdPack(input, start, holding));
    if (isWhole) return await indexHeldFile(arriving, start, admission);
    const sent = arrivingPack(createFastPack(start, input, incoming.add));
    const outcome = await attempt(arriving, sent, { ...admission, slots: taken(release) });
    if (typeof outcome !== 'string') return outcome;
    await holdAll(arriving, sent, whole);
    const next = outcome === 'outgrown' ? memory.largest(input.objectCount) : admission;
    return await indexHeldFile(arriving, whole, next);
  } finally {
    (release as (() => void) | null)?.();
    for (const path of [start, whole]) await rm(path, { force: true });
  }
}

/** A slot that was taken already. */
function taken(release: (() => void) | null): FairSlots {
  if (release === null) throw new TypeError('No slot was taken');
  return { take: () => release, acquire: async () => release };
}

/** After git was ended in the middle: writes the whole pack to a file, as it arrives. */
async function holdAll({ folder, signal }: ArrivingPack, sent: SentPack, path: string): Promise<void> {
  const bytes = await sent.again(join(await folder(), 'pack'));
  if (bytes === null) {
    throw new ObjectDatabaseError('object-database-unavailable', 'git ended before it had begun to write a pack');
  }
  await unlessAborted(signal, () => holdBytes(bytes, path));
}

async function indexHeldFile(
  arriving: ArrivingPack,
  path: string,
  admission: PackAdmission,
): Promise<IndexedPack | PackRefusal> {
  if (arriving.input.isTooShort()) return ENDS_TOO_EARLY;
  arriving.onEndOfInput();
  await clear(arriving);
  return indexWhole(
    arriving,
    wholePack(() => heldBytes(path)),
    admission,
  );
}

async function indexWhole(
  arriving: ArrivingPack,
  sent: SentPack,
  admission: PackAdmission,
): Promise<IndexedPack | PackRefusal> {
  const outcome = await attempt(arriving, sent, admission);
  if (typeof outcome !== 'string') return outcome;
  await clear(arriving);
  const again = await attempt(arriving, sent, arriving.memory.largest(arriving.input.objectCount));
  return typeof again === 'string' ? TAKES_TOO_MUCH : again;
}

/** Removes what a process that was ended has left. */
async function clear(arriving: ArrivingPack): Promise<void> {
  const packs = join(await arriving.folder(), 'pack');
  await rm(packs, { recursive: true, force: true });
  await mkdir(packs);
}

async function attempt(
  arriving: ArrivingPack,
  sent: SentPack,
  admission: PackAdmission,
): Promise<IndexedPack | PackRefusal | 'outgrown' | 'slow'> {
  const { git, input, signal, explain } = arriving;
  const onEndOfInput = input.ended() ? null : arriving.onEndOfInput;
  const { objectCount } = input;
  const outcome = await indexPack(git, { ...arriving, onEndOfInput, objectCount, sent, admission });
  if (typeof outcome === 'string' || !('refused' in outcome)) return outcome;
  const refusal = EXPLAINED.has(outcome.refused) ? await explain(sent, outcome, admission) : outcome;
  await unlessAborted(signal, () => input.drain());
  return refusal;
}

/** Refusals of an object that its owner can find. */
const EXPLAINED: ReadonlySet<PackRefusal['refused']> = new Set(['pack-fsck-failed', 'pack-not-connected'] as const);
