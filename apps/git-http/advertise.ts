/**
 * Answers about refs, from memory: info/refs for both services, and ls-refs.
 *
 * Must stay true: nothing here starts a process. The bytes of an answer are made once for each state of the refs,
 * cached within a bound, and never sent for another state. Of a large repository
 * only the runs that a push changed are written anew.
 */
import { LRUCache } from 'lru-cache';
import {
  type AdvertisedRefs,
  type AdvertisedRun,
  makeAnew,
  receivePackAdvertisement,
  type RunBytes,
  uploadPackAdvertisement,
  uploadPackCapabilities,
} from '../../core/git/wire/advertisement.ts';
import { type LsRefsRequest, lsRefsAnswer } from '../../core/git/wire/ls-refs.ts';
import { REF_ANSWERS_CACHE_BYTES_MAX } from '../../core/kernel/limits.ts';
import type { FoundRepository } from '../../core/use-cases/accounts/repositories.ts';
import { advertisedRefs } from '../../core/use-cases/reading/advertised-refs.ts';

const WHOLE_ANSWER_BYTES_MAX = 1024 * 1024;

export interface RefAnswers {
  /** The constant answer to a fetch's info/refs in protocol v2. */
  readonly capabilities: Uint8Array;
  uploadPack(repository: FoundRepository, version: 0 | 1): Uint8Array;
  receivePack(repository: FoundRepository, version: 0 | 1): Uint8Array;
  lsRefs(repository: FoundRepository, request: LsRefsRequest): Uint8Array;
}

export function createRefAnswers(agent: string): RefAnswers {
  const answers = new LRUCache<string, Uint8Array>({
    maxSize: REF_ANSWERS_CACHE_BYTES_MAX,
    sizeCalculation: (bytes, key) => bytes.length + key.length + 200,
  });
  const numbers = new WeakMap<AdvertisedRun, number>();
  let lastNumber = 0;
  const runBytes: RunBytes = (run, form, make) => {
    const number = numbers.get(run) ?? (lastNumber += 1);
    numbers.set(run, number);
    const key = `${number} ${form}`;
    const bytes = answers.get(key) ?? make();
    answers.set(key, bytes);
    return bytes;
  };
  // The last event determines the refs, and the default branch HEAD: together they determine the answer. A revision would
  // not: after a failover that lost the log's tail another event may have it.
  const cached = (
    repository: FoundRepository,
    form: string,
    make: (refs: AdvertisedRefs, kept: RunBytes) => Uint8Array,
  ): Uint8Array => {
    const key = `${repository.id} ${repository.entity.lastEventId} ${repository.defaultBranch} ${form}`;
    const known = answers.get(key);
    if (known !== undefined) return known;
    const refs = advertisedRefs(repository);
    const bytes = make(refs, refs.runs.length > 1 ? runBytes : makeAnew);
    // Larger ones are put together from those of their runs each time.
    if (bytes.length <= WHOLE_ANSWER_BYTES_MAX) answers.set(key, bytes);
    return bytes;
  };
  return {
    capabilities: uploadPackCapabilities(agent),
    uploadPack: (repository, version) =>
      cached(repository, `upload-pack ${version}`, (refs, kept) =>
        uploadPackAdvertisement(refs, { version, agent }, kept),
      ),
    receivePack: (repository, version) =>
      cached(repository, `receive-pack ${version}`, (refs, kept) =>
        receivePackAdvertisement(refs, { version, agent }, kept),
      ),
    lsRefs: (repository, request) =>
      cached(repository, JSON.stringify(request), (refs, kept) => lsRefsAnswer(refs, request, kept)),
  };
}
