/** Changes of refs, each of which is a push. */
import type { z } from 'zod';
import { type ChangedRefs, changeRefs, type RefFault } from '../../../core/use-cases/pushing/change-refs.ts';
import type { UsedKey } from '../../../core/use-cases/pushing/push-keys.ts';
import type { PushKey } from '../../../core/use-cases/pushing/push-refs.ts';
import { refChangesOf } from '../../front-door/callers.ts';
import { refusedPush } from '../../front-door/changes.ts';
import { reasonOf } from '../../front-door/texts/ref-faults.ts';
import { changedOnce } from '../changed-once.ts';
import { rateAnswer } from '../denials.ts';
import { explained, ok } from '../http/answer.ts';
import { movedJson } from '../ref-faults.ts';
import { type Outcome, type RepositoryCall, type Route, repositoryRoute } from '../route.ts';
import { REPOSITORY_PARAMS } from '../schemas/params.ts';
import { CHANGED_REFS, REF_CHANGES, REFS_NOT_CHANGED } from '../schemas/refs.ts';

const NOTES =
  'Creates, moves and deletes refs: one push, without objects. Each is decided against `expected`, the head that the caller saw. 200 if a ref is as wanted; with `atomic`, if all are. Else nothing changed: 409 if a head has moved, 422 otherwise, and `refused` says why. Tokens and quotas count it as a push.';

export const REF_ROUTES: readonly Route[] = [
  repositoryRoute({
    operationId: 'updateRefs',
    tag: 'Git data',
    summary: 'Create, move and delete refs',
    description: NOTES,
    method: 'POST',
    path: '/v1/repos/{username}/{name}/refs',
    push: true,
    grant: 'GIT_HTTP_WRITE',
    schemas: { params: REPOSITORY_PARAMS, body: REF_CHANGES },
    answers: { 200: CHANGED_REFS },
    problems: [409],
    refusal: REFS_NOT_CHANGED,
    handle: postRefs,
  }),
];

type RefChanges = z.output<typeof REF_CHANGES>;

function postRefs(call: RepositoryCall, { body }: { readonly body: RefChanges }): Promise<Outcome> {
  return changedOnce(call, {
    operation: 'updateRefs',
    asked: body,
    change: (key) => change(call, body, key),
    repeat: async (used) => ok(repeatedJson(body, used)),
  });
}

async function change(
  { context, principal, repository, origin, signal }: RepositoryCall,
  { updates, atomic }: RefChanges,
  key: PushKey | null,
): Promise<Outcome> {
  const refChanges = updates.reduce((sum, { ref }) => sum + refChangesOf(ref), 0);
  const onlyDeletes = updates.every(({ after }) => after === null);
  const refusal = await refusedPush(context, principal, { refChanges, onlyDeletes });
  if (refusal !== null) return rateAnswer(refusal);
  const changed = await changeRefs(context, await origin(), { repository, updates, atomic, key, signal: signal() });
  if ('refused' in changed) return changed;
  const { faults } = changed;
  const [first] = faults;
  const isDone = first === undefined || (!atomic && faults.length < updates.length);
  return isDone ? ok(changedJson(changed)) : notChanged(changed, first);
}

function notChanged(changed: ChangedRefs, first: RefFault): Outcome {
  const moved = changed.faults.find(({ head }) => head !== null);
  // The other refs of an atomic change are refused because of one that has a reason of its own.
  const cause = moved ?? changed.faults.find(({ code }) => code !== 'atomic-push-refused') ?? first;
  const json: z.output<typeof REFS_NOT_CHANGED> = {
    detail: `Nothing was changed. ${cause.ref}: ${reasonOf(cause)}`,
    ...movedJson(cause),
    ...changedJson(changed),
  };
  return explained(moved === undefined ? 422 : 409, json);
}

/** The event counts what was refused, and does not say why. */
function repeatedJson({ updates }: RefChanges, { event, data }: UsedKey): z.output<typeof CHANGED_REFS> {
  const changed = new Set(data.updates.map(({ ref }) => ref));
  const others = data.refused === 0 ? [] : updates.filter(({ ref }) => !changed.has(ref));
  return {
    event_id: event,
    updates: data.updates.map(({ ref, before, after, kind }) => ({ ref, before, after, kind })),
    refused: others.map(({ ref }) => ({ ref, code: 'not-changed', detail: NOT_CHANGED })),
  };
}

const NOT_CHANGED = 'the first request with this Idempotency-Key did not change it';

function changedJson({ event, updates, faults }: ChangedRefs): z.output<typeof CHANGED_REFS> {
  return {
    event_id: event,
    updates: updates.map(({ ref, before, after, kind }) => ({ ref, before, after, kind })),
    refused: faults.map((fault) => {
      const { ref, code, head } = fault;
      return { ref, code, detail: reasonOf(fault), ...(head === null ? {} : { head }) };
    }),
  };
}
