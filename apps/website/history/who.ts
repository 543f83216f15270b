/** Who caused an event, in words, and from where. */
import { type Actor, accessTokenOf } from '../../../core/kernel/envelope.ts';
import { isJsonObject, type JsonValue } from '../../../core/kernel/json.ts';
import type { ReadEntry } from '../../../core/use-cases/auditing/read-entries.ts';
import type { LogNames } from '../../../core/use-cases/reading/names-of-log-entries.ts';
import { type Content, html } from '../layout/html.ts';
import { ACTOR_WORDS } from '../repositories/pushed-by.ts';
import { shownName } from '../repositories/shown-text.ts';

export function actorText(actor: Actor, { tokens }: Pick<LogNames, 'tokens'>): Content {
  if (actor.kind !== 'token') return ACTOR_WORDS[actor.kind];
  const token = accessTokenOf(actor);
  if (token === null) return 'with an access token';
  const name = tokens.get(token);
  const label =
    name === undefined ? 'a token that is gone' : html`the token <strong><bdi>${shownName(name)}</bdi></strong>`;
  return html`with <a href="/access-tokens/${token}/activity">${label}</a>`;
}

/** Returns the address that the request came from; null if there was none, or it is erased. */
export function addressOf({ event, line }: ReadEntry): string | null {
  return event.sourceAddressRef === null ? null : openedText(line['openings'], event.sourceAddressRef);
}

function openedText(openings: JsonValue | undefined, ref: string): string | null {
  const opening = openings !== undefined && isJsonObject(openings) ? openings[ref] : undefined;
  const value = opening !== undefined && isJsonObject(opening) ? opening['value'] : undefined;
  return typeof value === 'string' ? value : null;
}
