/**
 * Answers about refs, from memory: info/refs for both services, and ls-refs.
 *
 * Invariants: nothing here starts a process. The bytes of an answer are made once for each state of the refs,
 * cached within a bound, and never sent for another state. Of a large repository only the runs that a push changed are
 * written again, and its answers are never made whole: who reads slowly keeps one piece in memory.
 */
import { LRUCache } from 'lru-cache';
import {
  type AdvertisedRefs,
  receivePackAdvertisement,
  uploadPackAdvertisement,
  uploadPackCapabilities,
} from '../../core/git/wire/advertisement.ts';
import { type LsRefsRequest, lsRefsAnswer } from '../../core/git/wire/ls-refs.ts';
import {
  type AdvertisedRun,
  type KeptRuns,
  NOTHING_KEPT,
  piecesOf,
  type RefPart,
  wholeAnswer,
} from '../../core/git/wire/ref-parts.ts';
import { MIB } from '../../core/kernel/byte-units.ts';
import { type CountedCache, countedCache } from '../../core/kernel/shown-caches.ts';
import { advertisedRefs } from '../../core/use-cases/reading/advertised-refs.ts';
import type { FoundRepository } from '../../core/use-cases/repositories/repositories.ts';

/** The memory for cached answers to GET info/refs and ls-refs. Internal: what is not kept is made again. */
const REF_ANSWERS_CACHE_BYTES_MAX = 32 * MIB;
/**
 * A longer answer about refs is never whole in memory, but made while its client reads it. Internal: both ways send the
 * same bytes.
 */
const WHOLE_REF_ANSWER_BYTES_MAX = MIB;

/** An answer, which was made whole if it is small. */
export interface RefAnswer {
  readonly whole: Uint8Array | null;
  /** Its pieces, each made when it is asked for. */
  pieces(): Iterable<Uint8Array>;
}

export interface RefAnswers {
  /** The constant answer to a fetch's info/refs in protocol v2. */
  readonly capabilities: Uint8Array;
  uploadPack(repository: FoundRepository, version: 0 | 1): RefAnswer;
  receivePack(repository: FoundRepository, version: 0 | 1): RefAnswer;
  lsRefs(repository: FoundRepository, request: LsRefsRequest): RefAnswer;
}

/** `agent` is the agent capability sent to clients: `strata/<version>`. */
export function createRefAnswers(agent: string): RefAnswers {
  const answers = countedCache(
    'ref_answers',
    'memory',
    new LRUCache<string, Uint8Array>({
      maxSize: REF_ANSWERS_CACHE_BYTES_MAX,
      sizeCalculation: (bytes, key) => bytes.length + key.length + 200,
    }),
  );
  const keptRuns = createKeptRuns(answers);
  // The last event determines the refs, and the default branch HEAD: together they determine the answer. A revision
  // would not: after a failover that lost the log's tail another event may have it.
  const answer = (
    repository: FoundRepository,
    form: string,
    make: (refs: AdvertisedRefs) => readonly RefPart[],
  ): RefAnswer => {
    const key = `${repository.id} ${repository.entity.lastEventId} ${repository.defaultBranch} ${form}`;
    const known = answers.get(key);
    if (known !== undefined) return { whole: known, pieces: () => piecesOf(make(advertisedRefs(repository))) };
    const refs = advertisedRefs(repository);
    const parts = make(refs);
    const kept = refs.runs.length > 1 ? keptRuns : NOTHING_KEPT;
    const whole = wholeAnswer(parts, WHOLE_REF_ANSWER_BYTES_MAX, kept);
    if (whole !== null) answers.set(key, whole);
    return { whole, pieces: () => piecesOf(parts, kept) };
  };
  return {
    capabilities: uploadPackCapabilities(agent),
    uploadPack: (repository, version) =>
      answer(repository, `upload-pack ${version}`, (refs) => uploadPackAdvertisement(refs, { version, agent })),
    receivePack: (repository, version) =>
      answer(repository, `receive-pack ${version}`, (refs) => receivePackAdvertisement(refs, { version, agent })),
    lsRefs: (repository, request) => answer(repository, JSON.stringify(request), (refs) => lsRefsAnswer(refs, request)),
  };
}

/** What was written of runs, among the answers. */
function createKeptRuns(answers: Pick<CountedCache<string, Uint8Array>, 'get' | 'set'>): KeptRuns {
  const numbers = new WeakMap<AdvertisedRun, number>();
  let lastNumber = 0;
  const keyOf = (run: AdvertisedRun, form: string): string => {
    const number = numbers.get(run) ?? (lastNumber += 1);
    numbers.set(run, number);
    return `${number} ${form}`;
  };
  return {
    get: (run, form) => answers.get(keyOf(run, form)),
    set: (run, form, bytes) => answers.set(keyOf(run, form), bytes),
  };
}
