/**
 * The answer to GET info/refs, which opens every fetch and push: gitprotocol-http(5), gitprotocol-v2(5).
 *
 * Must stay true: apart from the agent the bytes are those of `git http-backend` over the same refs, but that an
 * empty repository names its capabilities for upload-pack too (as git does since 2.41), and that we offer no
 * `object-info`. Offer nothing that git-path.md does not serve: clients use whatever is named here.
 */
import type { ObjectId } from '../../kernel/ids.ts';
import { ZERO_OBJECT_ID } from '../../kernel/ids.ts';
import { createLineWriter } from './pkt-line.ts';

/** A ref as clients see it; `peeled` is what an annotated tag leads to in the end, null for anything else. */
export interface AdvertisedRef {
  readonly name: string;
  readonly id: ObjectId;
  readonly peeled: ObjectId | null;
}

/** The refs one answer is made of. */
export interface AdvertisedRefs {
  /** The branch HEAD names, in full, born or not. */
  readonly head: string;
  /** In byte order of names. */
  readonly refs: readonly AdvertisedRef[];
}

export interface AdvertisementOptions {
  /** 1 differs from 0 only by a line that says so. */
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

/** info/refs for a fetch in protocol v0 or v1: HEAD first if it is born, tags with what they peel to. */
export function uploadPackAdvertisement(refs: AdvertisedRefs, options: AdvertisementOptions): Uint8Array {
  const headId = headIdOf(refs);
  const symref = headId === null ? '' : ` symref=HEAD:${refs.head}`;
  const capabilities = `${UPLOAD_PACK_CAPABILITIES}${symref} filter`;
  const advertisement = createAdvertisement('git-upload-pack', capabilities, options);
  if (headId !== null) advertisement.ref(headId, 'HEAD');
  for (const ref of refs.refs) {
    advertisement.ref(ref.id, ref.name);
    if (ref.peeled !== null) advertisement.ref(ref.peeled, `${ref.name}^{}`);
  }
  return advertisement.bytes();
}

/** info/refs for a push, which has no protocol v2: answer v0 to clients that ask for it. */
export function receivePackAdvertisement(refs: AdvertisedRefs, options: AdvertisementOptions): Uint8Array {
  const advertisement = createAdvertisement('git-receive-pack', RECEIVE_PACK_CAPABILITIES, options);
  for (const ref of refs.refs) advertisement.ref(ref.id, ref.name);
  return advertisement.bytes();
}

/** info/refs for a fetch in protocol v2: the same for every repository of the object format. */
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

/** The id of the branch HEAD names; null when that branch is not born. */
export function headIdOf(refs: AdvertisedRefs): ObjectId | null {
  return refs.refs.find((ref) => ref.name === refs.head)?.id ?? null;
}

/** Capabilities ride behind a NUL on the first ref, or on a name that stands for none: gitprotocol-pack(5). */
function createAdvertisement(service: string, capabilities: string, { version, agent }: AdvertisementOptions) {
  const writer = createLineWriter();
  writer.line(`# service=${service}`);
  writer.flush();
  if (version === 1) writer.line('version 1');
  let offer = `\0${capabilities} object-format=sha1 agent=${agent}`;
  const ref = (id: ObjectId, name: string) => {
    writer.line(`${id} ${name}${offer}`);
    offer = '';
  };
  return {
    ref,
    bytes(): Uint8Array {
      if (offer !== '') ref(ZERO_OBJECT_ID, 'capabilities^{}');
      writer.flush();
      return writer.bytes();
    },
  };
}
