/**
 * Messages that one page leaves for the next, in a cookie of their own.
 *
 * Invariants: the message is shown once, as text. It holds nothing secret, since it stands in a cookie.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Flash } from '../layout/answer.ts';
import type { Cookies } from './cookies.ts';

/** A message that one page of the website leaves for the next: encoded, it must fit into a cookie of 4,096 bytes. */
export const FLASH_LENGTH_MAX = 400;

/** Returns the message and removes it; null without one. */
export function takeFlash(cookies: Cookies, request: FastifyRequest, reply: FastifyReply): Flash | null {
  const sent = request.cookies[cookies.names.flash];
  // HEAD shows nobody anything.
  if (sent === undefined || request.method === 'HEAD') return null;
  reply.clearCookie(cookies.names.flash, cookies.attributes);
  const text = sent.slice(1, FLASH_LENGTH_MAX + 1);
  if (text === '') return null;
  return { kind: sent.startsWith('-') ? 'failed' : 'done', text };
}

export function leaveFlash(cookies: Cookies, reply: FastifyReply, { kind, text }: Flash): void {
  const marked = `${kind === 'failed' ? '-' : '+'}${text.slice(0, FLASH_LENGTH_MAX)}`;
  reply.setCookie(cookies.names.flash, marked, cookies.attributes);
}
