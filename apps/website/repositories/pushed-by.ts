/** Which push brought something, and who pushed. */
import type { ActorKind } from '../../../core/kernel/envelope.ts';
import type { PushRow } from '../../../core/ports/activity.ts';
import { type Content, type Html, html } from '../layout/html.ts';
import { timeAgo } from '../layout/times.ts';
import type { PageRequest } from './page-request.ts';
import { shownName } from './shown-text.ts';

export function pushedBy({ visit }: Pick<PageRequest, 'visit'>, push: PushRow): Html {
  return html`Pushed ${timeAgo(push.at, visit.now)} ${pusher(push)}, as <a href="/history/${push.eventId}">event ${push.revision} of the repository</a>`;
}

/** Who caused an event, of all but access tokens, which have names. */
export const ACTOR_WORDS: { readonly [Kind in Exclude<ActorKind, 'token'>]: string } = {
  user: 'on this site',
  trust_rule: 'by a trusted workload',
  system: 'by the service',
  admin: 'by the operator',
};

/** Names who pushed in the fewest words: the name of the token, or who else it was. */
export function pusherName({ actor, tokenName }: PushRow): string {
  return actor.kind === 'token' ? shownName(tokenName ?? actor.id) : ACTOR_WORDS[actor.kind];
}

/** Names who pushed: the name of the token as it is now, or as it last was, which leads to what the token did. */
export function pusher(push: PushRow): Content {
  const name = pusherName(push);
  if (push.actor.kind !== 'token') return name;
  return html`with <a href="/access-tokens/${push.actor.id}/activity">the token <strong><bdi>${name}</bdi></strong></a>`;
}
