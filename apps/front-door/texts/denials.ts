/**
 * Why a request is denied, in words for its caller: a grant or a scope is missing, or a rate is used up. REST, Git and
 * the website each write the text in their own form.
 *
 * Invariants: no text ends in a full stop.
 */
import type { Lack } from '../../../core/use-cases/callers/permission.ts';
import type { RateRefusal } from '../callers.ts';

/** Names the missing grant or scope. */
export function lackMessage(lack: Lack): string {
  switch (lack.lacks) {
    case 'grant':
      return `This token lacks the grant ${lack.grant}`;
    case 'scope':
      return `This token lacks the scope ${lack.scope}`;
  }
}

/** Says which rate is used up, and when to try again. */
export function rateRefusalText({ exceeded, waitSeconds }: RateRefusal): string {
  const again = `try again in ${waitText(waitSeconds)}`;
  switch (exceeded) {
    case 'token-points':
      return `This access token has used its points of this minute: ${again}`;
    case 'account-points':
      return `This account has used its points of this minute: ${again}`;
    case 'person-points':
      return `You have used the points of this minute: ${again}`;
    case 'at-once':
      return `Too many requests of this account are under way: ${again}`;
    case 'events':
      return `This account has made its changes of this hour: ${again}`;
    case 'ref-changes':
      return `This account has changed as many refs as it may within an hour: ${again}, or change fewer with one request`;
    case 'changes-of-tokens':
      return usedUpText('The access tokens of this account have', again);
    case 'changes-of-month':
      return usedUpText('This account has', again);
  }
}

function usedUpText(who: string, again: string): string {
  return `${who} used up the changes of this month (changes_per_month of its plan): ${again}, or change the plan`;
}

/** Returns the text for an exchange that would create a token, in the words of `rateRefusalText`. */
export function tokenChangesText(waitSeconds: number): string {
  return usedUpText('The access tokens of this account have', `try again in ${waitText(waitSeconds)}`);
}

/**
 * For an answer that ended with ReaderTooSlow before its first byte was sent: its own client was not slow, so the
 * answers that other clients read too slowly have taken its room.
 */
export const NO_ROOM_FOR_READER = {
  text: 'Too many answers wait for clients that read slowly: try again when some of them have ended',
  waitSeconds: 30,
} as const;

function waitText(seconds: number): string {
  if (seconds < 120) return seconds === 1 ? '1 second' : `${seconds} seconds`;
  const minutes = Math.ceil(seconds / 60);
  if (minutes < 120) return `${minutes} minutes`;
  const hours = Math.ceil(minutes / 60);
  return hours < 48 ? `${hours} hours` : `${Math.ceil(hours / 24)} days`;
}
