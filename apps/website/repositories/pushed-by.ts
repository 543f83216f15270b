/** Which push brought something, and who pushed. */
import type { PushRow } from '../../../core/ports/activity.ts';
import { type Content, html, type Html } from '../layout/html.ts';
import { timeAgo } from '../layout/times.ts';
import type { Asked } from './asked.ts';
import { shownName } from './shown-text.ts';

export function pushedBy({ visit }: Pick<Asked, 'visit'>, push: PushRow): Html {
  return html`Pushed ${timeAgo(push.at, visit.now)} ${pusher(push)}, as <a href="/history/${push.eventId}">event ${push.revision} of the repository</a>`;
}

/** Names who pushed: the name of the token as it is now, or as it last was. */
export function pusher({ actor, tokenName }: PushRow): Content {
  switch (actor.kind) {
    case 'token':
      return html`with the token <strong><bdi>${shownName(tokenName ?? actor.id)}</bdi></strong>`;
    case 'user':
      return 'on this site';
    case 'trust_rule':
      return 'by a trusted workload';
    case 'system':
      return 'by the service';
    case 'admin':
      return 'by the operator';
  }
}
