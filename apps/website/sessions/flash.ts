/**
 * Messages that one page leaves for the next, in a cookie of their own.
 *
 * Invariants: the message is shown once, as text. It holds nothing secret, since it stands in a cookie.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Flash, localPath } from '../layout/answer.ts';
import type { Cookies } from './cookies.ts';

/** A message that one page of the website leaves for the next: encoded, it must fit into a cookie of 4,096 bytes. */
export const FLASH_LENGTH_MAX = 400;

/** Returns the message and removes it; null without one. */
export function takeFlash(cookies: Cookies, request: FastifyRequest, reply: FastifyReply): Flash | null {
  const sent = request.cookies[cookies.names.flash];
  // HEAD shows nobody anything.
  if (sent === undefined || request.method === 'HEAD') return null;
  reply.clearCookie(cookies.names.flash, cookies.attributes);
  const [, undo = '', marked = ''] = UNDO_BEFORE_TEXT.exec(sent) ?? ['', '', sent];
  const text = marked.slice(1, FLASH_LENGTH_MAX + 1);
  if (text === '') return null;
  return { kind: marked.startsWith('-') ? 'failed' : 'done', text, undo: localPath(undo) };
}

/** The path of the page that undoes stands in a line of its own before the message. */
const UNDO_BEFORE_TEXT = /^(\/[^\n]*)\n([^]*)$/;
/**
 * What browsers keep of a cookie, with room for its name and its attributes. Internal: a message that leaves no room
 * for the link goes without it.
 */
const COOKIE_VALUE_LENGTH_MAX = 3_840;

export function leaveFlash(cookies: Cookies, reply: FastifyReply, { kind, text, undo }: Flash): void {
  const message = `${kind === 'failed' ? '-' : '+'}${text.slice(0, FLASH_LENGTH_MAX)}`;
  const withUndo = `${undo ?? ''}\n${message}`;
  // The activity of the repository leads to the same page.
  const hasRoom = undo !== null && encodeURIComponent(withUndo.toWellFormed()).length <= COOKIE_VALUE_LENGTH_MAX;
  reply.setCookie(cookies.names.flash, hasRoom ? withUndo : message, cookies.attributes);
}
