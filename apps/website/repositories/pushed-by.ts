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

/** Names who pushed: the name of the token as it is now, or as it last was, which leads to what the token did. */
export function pusher({ actor, tokenName }: PushRow): Content {
  if (actor.kind !== 'token') return ACTOR_WORDS[actor.kind];
  return html`with <a href="/access-tokens/${actor.id}/activity">the token <strong><bdi>${shownName(tokenName ?? actor.id)}</bdi></strong></a>`;
}
