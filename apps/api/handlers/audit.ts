/**
 * Checkpoints of the account's log, and proofs that an entry or an older tree is part of it (docs/audit.md).
 *
 * Invariants: a checkpoint is of the log as it was when the request arrived, or newer.
 */
import type { z } from 'zod';
import { LOG_KEYS_CACHE_SECONDS } from '../../../core/kernel/limits.ts';
import { type Proof, proveConsistency, proveInclusion } from '../../../core/use-cases/auditing/checkpoints.ts';
import { ok, plainText } from '../http/answer.ts';
import type { AccountCall, Outcome, PublicCall } from '../route.ts';
import type { CONSISTENCY_QUERY, INCLUSION_QUERY, PROOF } from '../schemas/audit.ts';

export async function getLogKeys({ context }: PublicCall): Promise<Outcome> {
  const headers = { 'cache-control': `public, max-age=${LOG_KEYS_CACHE_SECONDS}` };
  return plainText(await context.checkpoints.verifierKeys(), headers);
}

export async function getLatestCheckpoint({ context, principal, position }: AccountCall): Promise<Outcome> {
  return plainText((await context.checkpoints.sign(principal.account, position)).note);
}

export async function getInclusionProof(
  { context, principal, position }: AccountCall,
  { query }: { readonly query: z.output<typeof INCLUSION_QUERY> },
): Promise<Outcome> {
  const { sequence, tree_size: size } = query;
  return proofAnswer(await proveInclusion({ ...context, position }, principal.account, { sequence, size }));
}

export async function getConsistencyProof(
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
