/**
 * Checkpoints of the account's log, and proofs that an entry or an older tree is part of it (docs/audit.md).
 *
 * Invariants: a checkpoint is of the log as it was when the request arrived, or newer.
 */
import type { z } from 'zod';
import { type Proof, proveConsistency, proveInclusion } from '../../../core/use-cases/auditing/checkpoints.ts';
import { ok, plainText } from '../http/answer.ts';
import { type AccountCall, accountRoute, type Outcome, type PublicCall, publicRoute, type Route } from '../route.ts';
import { CONSISTENCY_QUERY, INCLUSION_QUERY, LOG_KEYS, PROOF } from '../schemas/audit.ts';

/**
 * How long anybody may keep the list of keys: a new key signs immediately, and a verifier that lacks it reads again.
 * Internal: it is a header of an answer, which its readers judge.
 */
const LOG_KEYS_CACHE_SECONDS = 60;

export const AUDIT_ROUTES: readonly Route[] = [
  publicRoute({
    operationId: 'getLogKeys',
    tag: 'Audit',
    summary: 'The keys of checkpoints',
    description:
      'All keys that have ever signed a checkpoint, one a line, in the form of verifier keys: `<name>+<key id>+<base64>` (C2SP signed-note).',
    method: 'GET',
    path: '/.well-known/strata-log-keys',
    schemas: {},
    answers: {},
    text: 'text/plain',
    problems: [503],
    handle: getLogKeys,
  }),
  publicRoute({
    operationId: 'listLogKeys',
    tag: 'Audit',
    summary: 'The keys of checkpoints, and which key endorses which',
    description:
      'The keys of `/.well-known/strata-log-keys` with the endorsements that logs of accounts hold, oldest first. `endorsed_by` is the line of the key before it, and `signature` its Ed25519 signature of the canonical JSON of `{key, previous}`, in base64: null where a key was revoked, and its line must come from elsewhere.',
    method: 'GET',
    path: '/v1/log-keys',
    schemas: {},
    answers: { 200: LOG_KEYS },
    problems: [503],
    handle: listLogKeys,
  }),
  accountRoute({
    operationId: 'getLatestCheckpoint',
    tag: 'Audit',
    summary: 'Sign the head of the log',
    description:
      'The size and the root of the Merkle tree (RFC 6962) over the log of the account as it is now, as a signed note (C2SP tlog-checkpoint). Keep it: whatever the log shows later must be consistent with it.',
    method: 'GET',
    path: '/v1/account/checkpoints/latest',
    grant: 'ALL',
    scope: 'ALL_REPO',
    schemas: {},
    answers: {},
    text: 'text/plain',
    problems: [],
    handle: getLatestCheckpoint,
  }),
  accountRoute({
    operationId: 'getInclusionProof',
    tag: 'Audit',
    summary: 'Prove that an entry is in the log',
    description: 'The hashes of RFC 6962, section 2.1.1, that lead from the leaf of an entry to the root of a tree.',
    method: 'GET',
    path: '/v1/account/proofs/inclusion',
    grant: 'ALL',
    scope: 'ALL_REPO',
    schemas: { query: INCLUSION_QUERY },
    answers: { 200: PROOF },
    problems: [],
    handle: getInclusionProof,
  }),
  accountRoute({
    operationId: 'getConsistencyProof',
    tag: 'Audit',
    summary: 'Prove that a log continues an older one',
    description:
      'The hashes of RFC 6962, section 2.1.2, that lead from the roots of two trees of the log to each other.',
    method: 'GET',
    path: '/v1/account/proofs/consistency',
    grant: 'ALL',
    scope: 'ALL_REPO',
    schemas: { query: CONSISTENCY_QUERY },
    answers: { 200: PROOF },
    problems: [],
    handle: getConsistencyProof,
  }),
];

async function getLogKeys({ context }: PublicCall): Promise<Outcome> {
  const headers = { 'cache-control': `public, max-age=${LOG_KEYS_CACHE_SECONDS}` };
  return plainText(await context.checkpoints.verifierKeys(), headers);
}

async function listLogKeys({ context }: PublicCall): Promise<Outcome> {
  const keys = await context.checkpoints.listKeys();
  const json: z.output<typeof LOG_KEYS> = {
    keys: keys.map(({ vkey, endorsedBy, signature, isRevoked }) => {
      return { vkey, endorsed_by: endorsedBy, signature, revoked: isRevoked };
    }),
  };
  return ok(json);
}

async function getLatestCheckpoint({ context, principal, position }: AccountCall): Promise<Outcome> {
  return plainText((await context.checkpoints.sign(principal.account, position)).note);
}

async function getInclusionProof(
  { context, principal, position }: AccountCall,
  { query }: { readonly query: z.output<typeof INCLUSION_QUERY> },
): Promise<Outcome> {
  const { sequence, tree_size: size } = query;
  return proofAnswer(await proveInclusion({ ...context, position }, principal.account, { sequence, size }));
}

async function getConsistencyProof(
  { context, principal, position }: AccountCall,
  { query }: { readonly query: z.output<typeof CONSISTENCY_QUERY> },
): Promise<Outcome> {
  return proofAnswer(await proveConsistency({ ...context, position }, principal.account, query));
}

function proofAnswer(hashes: Proof | null): Outcome {
  if (hashes === null) return { refused: { code: 'no-such-tree' } };
  const json: z.output<typeof PROOF> = { hashes: [...hashes] };
  return ok(json);
}
