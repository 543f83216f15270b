/**
 * Answers about refs, from memory: info/refs for both services, and ls-refs.
 *
 * Must stay true: nothing here starts a process. The bytes of an answer are made once for each state of the refs,
 * cached within a bound, and never sent for another state.
 */
import { LRUCache } from 'lru-cache';
import {
  type AdvertisedRefs,
  receivePackAdvertisement,
  uploadPackAdvertisement,
  uploadPackCapabilities,
} from '../../core/git/wire/advertisement.ts';
import { type LsRefsRequest, lsRefsAnswer } from '../../core/git/wire/ls-refs.ts';
import { REF_ANSWERS_CACHE_BYTES_MAX } from '../../core/kernel/limits.ts';
import type { FoundRepository } from '../../core/use-cases/accounts/repositories.ts';
import { advertisedRefs } from '../../core/use-cases/reading/advertised-refs.ts';

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
  // The revision determines the refs, and the default branch determines HEAD: together they determine the answer.
  const cached = (
    repository: FoundRepository,
    form: string,
    make: (refs: AdvertisedRefs) => Uint8Array,
  ): Uint8Array => {
    const key = `${repository.id} ${repository.entity.revision} ${repository.defaultBranch} ${form}`;
    const known = answers.get(key);
    if (known !== undefined) return known;
    const bytes = make(advertisedRefs(repository));
    answers.set(key, bytes);
    return bytes;
  };
  return {
    capabilities: uploadPackCapabilities(agent),
    uploadPack: (repository, version) =>
      cached(repository, `upload-pack ${version}`, (refs) => uploadPackAdvertisement(refs, { version, agent })),
    receivePack: (repository, version) =>
      cached(repository, `receive-pack ${version}`, (refs) => receivePackAdvertisement(refs, { version, agent })),
    lsRefs: (repository, request) => cached(repository, JSON.stringify(request), (refs) => lsRefsAnswer(refs, request)),
  };
}
