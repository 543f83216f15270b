/**
 * Plays a provider of rows.ts in the proxy between the service and a real S3 server, and notes what it was asked.
 *
 * Invariants: what no source tells is done as the S3 server does it, and noted as unknown. Manifests are played too,
 * but nothing is noted of them, since the service writes them when it likes.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { S3Fault, S3Proxy, S3Request } from '../support/s3-proxy.ts';
import type { S3Server } from '../support/versitygw.ts';
import type { Fact, Facts, Provider, Refused } from './rows.ts';

/** How long the first of several racing puts takes, where more than one of them wins. */
const RACE_MS = 100;

/** What the requests were about. */
export interface Seen {
  /** The facts without a source. */
  readonly unknown: Set<keyof Facts>;
  /** The last refusal that the service has no other way for. */
  refused: Refused | null;
  /** Whether an object was stored without the condition. */
  isUnconditional: boolean;
  /** Whether an object was read that was stored before. */
  isReadBack: boolean;
}

export interface Play {
  readonly fault: S3Proxy['fault'];
  /** Returns what the requests from now on are about, until the next call. */
  watch(): Seen;
}

export function play({ facts }: Provider, { bucket, folder }: Pick<S3Server, 'bucket' | 'folder'>): Play {
  let seen = nothingSeen();
  let stored = new Set<string>();
  /** Keys whose last request was a conditional put. */
  const begun = new Set<string>();
  const partSizes = new Map<string, number[]>();

  function look<Behaviour>(of: Asked, name: keyof Facts, fact: Fact<Behaviour> | null): Behaviour | null {
    if (fact === null && !of.isManifest) seen.unknown.add(name);
    return fact === null ? null : fact.is;
  }

  /** The service cannot do without what is refused here. */
  function refuse(refused: Refused): S3Fault {
    seen.refused = refused;
    return { kind: 'answer', ...refused };
  }

  function note(of: Asked): void {
    if (of.isManifest) return;
    stored.add(of.target);
    if (!of.isConditional) seen.isUnconditional = true;
  }

  const fileOf = ({ target }: Asked): string => path.join(folder, target.slice(`/${bucket}/`.length));

  const withoutCondition = (of: Asked): S3Fault => ({
    kind: 'after',
    work: () => rm(fileOf(of), { force: true }),
  });

  function decide(of: Asked): S3Fault | null {
    const address = look(of, 'address', facts.address);
    if (of.isInPath && address !== null && address !== 'taken') return refuse(address);
    if (of.hasChecksum) {
      const checksums = look(of, 'checksums', facts.checksums);
      if (checksums !== null) return refuse(checksums);
    }
    return of.upload === null ? decideWhole(of) : decideInParts(of, of.upload);
  }

  function decideWhole(of: Asked): S3Fault | null {
    look(of, 'objects', facts.objects);
    if (of.method !== 'PUT') {
      begun.delete(of.target);
      if (of.method === 'GET' && stored.has(of.target)) seen.isReadBack = true;
      return null;
    }
    if (of.hasOtherHash) {
      const hashes = look(of, 'hashes', facts.hashes);
      if (hashes === null) return null;
      if (hashes !== 'taken') return { kind: 'answer', ...hashes };
      mkdirSync(path.dirname(fileOf(of)), { recursive: true });
      writeFileSync(fileOf(of), of.body);
      return DONE;
    }
    if (of.isConditional) return decideConditional(of);
    note(of);
    return null;
  }

  function decideConditional(of: Asked): S3Fault | null {
    const condition = look(of, 'condition', facts.condition);
    if (condition !== null && condition !== 'kept' && condition !== 'ignored') return { kind: 'answer', ...condition };
    note(of);
    if (condition === 'ignored') return withoutCondition(of);
    const isSecond = begun.has(of.target);
    begun.add(of.target);
    const isThere = existsSync(fileOf(of));
    const race = isSecond ? look(of, 'race', facts.race) : (facts.race?.is ?? null);
    if (isThere || race === null || race === 'one wins') return null;
    if (race === 'several win') return isSecond ? DONE : { kind: 'after', work: () => sleep(RACE_MS) };
    return isSecond ? { kind: 'answer', ...race } : null;
  }

  function decideInParts(of: Asked, upload: Upload): S3Fault | null {
    const parts = look(of, 'parts', facts.parts);
    if (of.method === 'PUT') partSizes.set(upload.id, [...(partSizes.get(upload.id) ?? []), of.body.length]);
    if (of.method !== 'POST' || upload.isNew) return null;
    const areEqual = haveOneSize(partSizes.get(upload.id) ?? []);
    if (!areEqual && parts !== null && parts !== 'of any size') return refuse(parts);
    note(of);
    if (!of.isConditional) return null;
    return look(of, 'completion', facts.completion) === 'ignored' ? withoutCondition(of) : null;
  }

  return {
    fault: (request) => decide(readRequest(request, bucket)),
    watch: () => {
      seen = nothingSeen();
      stored = new Set();
      return seen;
    },
  };
}

/** The provider says that it did it. */
const DONE: S3Fault = { kind: 'answer', status: 200, code: null };

function nothingSeen(): Seen {
  return { unknown: new Set(), refused: null, isUnconditional: false, isReadBack: false };
}

/** Whether all parts but the last are of one size, and the last is no larger. */
function haveOneSize(sizes: readonly number[]): boolean {
  const [first = 0] = sizes;
  return sizes.every((size, index) => (index < sizes.length - 1 ? size === first : size <= first));
}

interface Upload {
  readonly id: string;
  /** Whether the request is the one that begins it. */
  readonly isNew: boolean;
}

interface Asked {
  readonly method: string;
  /** The path of the address with the bucket's name in it. */
  readonly target: string;
  /** Whether the name stands in the path, and not in the host. */
  readonly isInPath: boolean;
  readonly body: Buffer;
  /** Null for a request that is not of an upload in parts. */
  readonly upload: Upload | null;
  readonly isManifest: boolean;
  readonly isConditional: boolean;
  readonly hasChecksum: boolean;
  readonly hasOtherHash: boolean;
}

const CHECKSUM = /^x-amz-(?:checksum|sdk-checksum|trailer)/;

function readRequest({ method, url, headers, body }: S3Request, bucket: string): Asked {
  const { pathname, searchParams } = new URL(url, 'http://s3.invalid');
  const isInPath = headers.host?.startsWith(`${bucket}.`) !== true;
  const target = isInPath ? pathname : `/${bucket}${pathname}`;
  const isNew = searchParams.has('uploads');
  const id = searchParams.get('uploadId');
  return {
    ...{ method, target, isInPath, body },
    upload: isNew || id !== null ? { id: id ?? '', isNew } : null,
    isManifest: target.includes('/manifest/'),
    isConditional: headers['if-none-match'] === '*',
    hasChecksum:
      headers['content-encoding'] === 'aws-chunked' || Object.keys(headers).some((name) => CHECKSUM.test(name)),
    hasOtherHash: headers['x-amz-content-sha256'] !== createHash('sha256').update(body).digest('hex'),
  };
}
