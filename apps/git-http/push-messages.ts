/** The messages for a refused push or a refused ref of a push. Each one says what to do. */
import type { QuotaRefusal } from '../../core/usage/quota.ts';
import type { PushRefusal } from '../../core/use-cases/pushing/push-refs.ts';
import type { Outage } from '../front-door/texts/outages.ts';

/** What to do about a refused pack, as far as its owner can do something. */
export function adviceFor(code: PushRefusal['code'], fromShallow: boolean): readonly string[] {
  if (code === 'pack-fsck-failed') return [FSCK_ADVICE];
  if (code !== 'pack-not-connected') return [];
  return [fromShallow ? SHALLOW_ADVICE : MISSING_ADVICE];
}

const FSCK_ADVICE =
  'Rewrite the history without this object and push again: git replace --edit, then git filter-repo. Or ask the operator of this server.';
const SHALLOW_ADVICE = 'This clone is shallow: complete it with git fetch --unshallow, then push again.';
const MISSING_ADVICE =
  'The repository that you push from lacks this object: push from a full clone (git fetch --unshallow completes a shallow one; git fsck names what else is missing).';

/** For a push whose append got no answer. */
export const OUTCOME_UNKNOWN =
  'the push may have been committed: the service got no answer from its log; fetch to see, then push again';

/** For a push that an outage ended before its append. */
export function outageLine({ message }: Outage): string {
  return message.includes('nothing ') ? message : `${message}: nothing was changed`;
}

/** What was read of a push's body, and whether it was read to its end. */
export interface ReadBody {
  readonly receivedBytes: number;
  readonly whole: boolean;
}

/** The reason why the whole push is refused. */
export function pushRefusalText(refusal: PushRefusal, body: ReadBody): string {
  switch (refusal.code) {
    case 'storage-quota-reached':
      return `storage quota reached: ${sizes(refusal, body)}; delete repositories you no longer need, or change the plan`;
    case 'ingress-quota-reached':
      return `ingress quota of this month reached: ${sizes(refusal, body)}; it is reset next month, or change the plan`;
    case 'token-no-longer-valid':
      return 'the access token was revoked, expired or lost its grant while the push was under way';
    case 'repository-not-found':
      return 'the repository was deleted while the push was under way';
    case 'push-took-too-long':
      return 'the push took too long to commit: push again';
    case 'refs-moved-too-often':
      return 'others moved the refs whenever the push was decided: push again';
    case 'key-in-use':
      return 'another push with this key is under way: push again';
    case 'disk-full':
      return 'the server has no room left on its disk: nothing was changed, try again later';
    case 'too-much-at-once':
      return `${refusal.detail}: nothing was changed, push again when they have ended`;
    case 'pack-broken':
    case 'pack-fsck-failed':
    case 'pack-not-connected':
    case 'pack-too-large':
    case 'pack-too-many-objects':
    case 'pack-object-too-large':
    case 'pack-too-costly':
      return refusal.detail;
  }
}

/** A body that was not read to its end has more than what was read. */
function sizes({ leftBytes, sizeBytes }: QuotaRefusal, { receivedBytes, whole }: ReadBody): string {
  const isKnown = sizeBytes !== null || whole;
  return `${kibibytes(leftBytes)} are left, and this push brings ${isKnown ? '' : 'more than '}${kibibytes(sizeBytes ?? receivedBytes)}`;
}

/** Exact enough for two sizes that are near each other: thousands of bytes in groups. */
function kibibytes(bytes: number): string {
  return `${Math.ceil(bytes / 1_024).toLocaleString('en-US')} KiB`;
}
