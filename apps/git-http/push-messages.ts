/** What a pusher reads when a push, or a ref of it, is refused: one table, each line saying what to do. */
import type { RefRefusalCode } from '../../core/repository/commands.ts';
import type { PushRefusal } from '../../core/use-cases/pushing/push-refs.ts';

/** The reason git shows in brackets beside the ref: short, without a full stop. */
export const REF_REFUSALS: { readonly [Code in RefRefusalCode]: string } = {
  'ref-moved': 'someone else moved it first: fetch, then push again',
  'ref-exists': 'it exists already: fetch, then push again',
  'ref-missing': 'it does not exist here any more: fetch, then push again',
  'ref-collides': 'a ref cannot be a folder of another: choose another name',
  'object-missing': 'the object it should point to is not here',
  'branch-needs-commit': 'a branch can only point to a commit',
  'atomic-push-refused': 'atomic push failed: another ref was refused',
};

/** The reason for a push refused whole. */
export function pushRefusalText(refusal: PushRefusal): string {
  switch (refusal.code) {
    case 'storage-quota-reached':
      return 'storage quota reached: delete repositories you no longer need, or change the plan';
    case 'ingress-quota-reached':
      return 'ingress quota of this month reached: it begins anew next month, or change the plan';
    case 'token-no-longer-valid':
      return 'the access token was revoked, expired or lost its grant while the push was under way';
    case 'repository-not-found':
      return 'the repository was deleted while the push was under way';
    case 'push-took-too-long':
      return 'the push took too long to commit: push again';
    case 'disk-full':
      return 'the server has no room left on its disk: nothing was changed, try again later';
    case 'pack-broken':
    case 'pack-fsck-failed':
    case 'pack-not-connected':
    case 'pack-too-large':
    case 'pack-too-many-objects':
    case 'pack-too-costly':
      return refusal.detail;
  }
}
