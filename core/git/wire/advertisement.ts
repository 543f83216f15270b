/**
 * The answer to GET info/refs, the first request of every fetch and push: gitprotocol-http(5), gitprotocol-v2(5).
 *
 * Invariants: the bytes are those of `git http-backend` for the same refs, with three exceptions: the agent
 * differs, an empty repository advertises capabilities for upload-pack too (as git does since 2.41), and `object-info`
 * is not offered. Advertise only what docs/git-path.md describes, because clients use every capability that is
 * advertised.
 */
import type { ObjectId } from '../../kernel/ids.ts';
import { ZERO_OBJECT_ID } from '../../kernel/ids.ts';
import { byRefOrder } from '../ref-name.ts';
import { createLineWriter } from './pkt-line.ts';
import { type AdvertisedRun, createRefParts, type RefPart, type WriteRef } from './ref-parts.ts';

/** The refs of one answer. */
export interface AdvertisedRefs {
  /** The full name of the branch that HEAD points to, even if that branch does not exist. */
  readonly head: string;
  /** None is empty, and the names of each come before those of the next. */
  readonly runs: readonly AdvertisedRun[];
}

export interface AdvertisementOptions {
  /** Version 1 differs from 0 only by a first line that names it. */
  readonly version: 0 | 1;
  /** Name and version of the server, e.g. `strata/0.1.0`: printable ASCII without spaces. */
  readonly agent: string;
}

const UPLOAD_PACK_CAPABILITIES = [
  'multi_ack thin-pack side-band side-band-64k ofs-delta shallow deepen-since deepen-not deepen-relative no-progress',
  'include-tag multi_ack_detailed allow-tip-sha1-in-want allow-reachable-sha1-in-want no-done',
].join(' ');
const RECEIVE_PACK_CAPABILITIES =
  'report-status report-status-v2 delete-refs side-band-64k quiet atomic ofs-delta push-options';

/**
 * Returns info/refs for a fetch in protocol v0 or v1: HEAD first if its branch exists, and tags with their peeled ids.
 */
export function uploadPackAdvertisement(refs: AdvertisedRefs, options: AdvertisementOptions): readonly RefPart[] {
  const headId = headIdOf(refs);
  const symref = headId === null ? '' : ` symref=HEAD:${refs.head}`;
  const capabilities = `${UPLOAD_PACK_CAPABILITIES}${symref} filter`;
  const advertisement = createAdvertisement('git-upload-pack', capabilities, options);
  if (headId !== null) advertisement.ref(headId, 'HEAD');
  for (const run of refs.runs) advertisement.run(run, withPeeled);
  return advertisement.end();
}

const withPeeled: WriteRef = ({ id, name, peeled }, line) => {
  line(`${id} ${name}`);
  if (peeled !== null) line(`${peeled} ${name}^{}`);
};
const plain: WriteRef = ({ id, name }, line) => line(`${id} ${name}`);

/** Returns info/refs for a push. Pushes have no protocol v2: answer clients that request it with version 0. */
export function receivePackAdvertisement(refs: AdvertisedRefs, options: AdvertisementOptions): readonly RefPart[] {
  const advertisement = createAdvertisement('git-receive-pack', RECEIVE_PACK_CAPABILITIES, options);
  for (const run of refs.runs) advertisement.run(run, plain);
  return advertisement.end();
}

/** Returns info/refs for a fetch in protocol v2: the same for every repository of this object format. */
export function uploadPackCapabilities(agent: string): Uint8Array {
  const writer = createLineWriter();
  writer.line('version 2');
  writer.line(`agent=${agent}`);
  writer.line('ls-refs=unborn');
  writer.line('fetch=shallow wait-for-done filter');
  writer.line('server-option');
  writer.line('object-format=sha1');
  writer.flush();
  return writer.bytes();
}

/** Returns the id of the branch that HEAD points to; null if that branch does not exist. */
export function headIdOf(refs: AdvertisedRefs): ObjectId | null {
  const at = firstPlace(refs.runs, (name) => byRefOrder(name, refs.head) >= 0);
  const ref = refs.runs[at.run]?.[at.ref];
  return ref?.name === refs.head ? ref.id : null;
}

/** A ref's run and its place in that. The place after the last is the first of the run after the last. */
export interface RefPlace {
  readonly run: number;
  readonly ref: number;
}

/** Returns the first place whose name passes. All names after the first that passes must pass. */
export function firstPlace(runs: readonly AdvertisedRun[], passes: (name: string) => boolean): RefPlace {
  const run = firstIndex(runs, (refs) => passes(refs.at(-1)?.name ?? ''));
  return { run, ref: firstIndex(runs[run] ?? [], ({ name }) => passes(name)) };
}

function firstIndex<Item>(items: readonly Item[], passes: (item: Item) => boolean): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const item = items[middle];
    if (item !== undefined && passes(item)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * Writes the capabilities after a NUL on the first ref, or on `capabilities^{}` if there is none: gitprotocol-pack(5).
 */
function createAdvertisement(service: string, capabilities: string, { version, agent }: AdvertisementOptions) {
  const parts = createRefParts();
  parts.line(`# service=${service}`);
  parts.flush();
  if (version === 1) parts.line('version 1');
  let offer = `\0${capabilities} object-format=sha1 agent=${agent}`;
  const line = (text: string): void => {
    parts.line(`${text}${offer}`);
    offer = '';
  };
  return {
    ref: (id: ObjectId, name: string): void => line(`${id} ${name}`),
    run(run: AdvertisedRun, write: WriteRef): void {
      const [first] = run;
      if (offer === '' || first === undefined) {
        parts.run(run, service, write);
        return;
      }
      write(first, line);
      parts.refs(run.slice(1), write);
    },
    end(): readonly RefPart[] {
      if (offer !== '') line(`${ZERO_OBJECT_ID} capabilities^{}`);
      parts.flush();
      return parts.end();
    },
  };
}
