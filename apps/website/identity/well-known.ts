/**
 * What programs look for at fixed places of every website: the page where a password is changed (W3C, A Well-Known URL
 * for Changing Passwords), which password managers open, and whom to tell of a weakness (RFC 9116).
 */
import { redirectTo, type SiteAnswer, showContent } from '../layout/answer.ts';
import { notFound } from '../layout/problems.ts';
import type { Site } from '../layout/room.ts';
import type { Visit } from '../layout/visit.ts';

const DAY_MS = 24 * 60 * 60_000;
/** RFC 9116, section 2.5.5, recommends less than a year. Internal: nobody sends it. */
const EXPIRES_DAYS = 90;

export function wellKnownRoutes(site: Site): void {
  const { securityContact } = site.context;
  site.publicPage('/.well-known/change-password', async () => redirectTo('/settings/password'));
  site.publicPage('/.well-known/security.txt', async (visit) =>
    securityContact === null ? notFound(visit) : securityText(securityContact, visit),
  );
}

/** The contact is there for as long as the setting is, so each day has an end of its own. */
function securityText(contact: string, { now }: Visit): SiteAnswer {
  const today = Math.floor(Date.parse(now) / DAY_MS) * DAY_MS;
  const expires = new Date(today + EXPIRES_DAYS * DAY_MS).toISOString();
  return showContent(`Contact: ${contact}\nExpires: ${expires}\n`, { 'content-type': 'text/plain; charset=utf-8' });
}
