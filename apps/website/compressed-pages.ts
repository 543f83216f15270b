/**
 * Compresses pages whose length tells nobody what is in them.
 *
 * Invariants: of a page that holds a secret and a text that somebody else chose, the compressed length tells whether
 * they have letters in common (BREACH). So what is compressed answers a plain GET: secrets are shown in answers to
 * forms, and texts come from a query or from the message of the page before. The tokens of forms have a new salt in
 * each answer.
 */
import { pipeline } from 'node:stream';
import { promisify } from 'node:util';
import { constants, createGzip, gzip } from 'node:zlib';
import type { FastifyRequest } from 'fastify';
import { KIB } from '../../core/kernel/byte-units.ts';
import { acceptedCoding } from '../front-door/accepted-coding.ts';
import { type SiteAnswer, showContent } from './layout/answer.ts';
import { heldBytesOf, pageStream } from './page-stream.ts';

/** Shorter pages are sent as they are. Internal: it saves nothing there. */
const COMPRESSED_PAGE_BYTES_MIN = KIB;
/** It takes less time than the default, for about two percent more bytes, as for answers of the API. */
const LEVEL = 4;

const compress = promisify(gzip);

/** Returns the answer to a GET as it is to be sent. `hasFlash`: whether the request brought a message. */
export async function compressedPage(
  request: Pick<FastifyRequest, 'headers' | 'url'>,
  answer: SiteAnswer,
  hasFlash: boolean,
): Promise<SiteAnswer> {
  if (answer.kind !== 'page' || answer.status !== 200 || request.url.includes('?') || hasFlash) return answer;
  const varying = { ...answer.headers, vary: 'accept-encoding' };
  if (acceptedCoding(request.headers['accept-encoding'], 'gzip') === 0) return { ...answer, headers: varying };
  const headers = { ...varying, 'content-type': 'text/html; charset=utf-8', 'content-encoding': 'gzip' };
  const heldBytes = heldBytesOf(answer.html);
  if (heldBytes !== null) {
    // Each piece is sent when it is made: browsers show the first while they wait for the others.
    const coded = createGzip({ level: LEVEL, flush: constants.Z_SYNC_FLUSH });
    // What goes wrong with one side ends the other.
    return showContent(
      pipeline(pageStream(answer.html), coded, () => undefined),
      headers,
      200,
      heldBytes,
    );
  }
  const markup = answer.html.markup();
  if (markup.length < COMPRESSED_PAGE_BYTES_MIN) return { ...answer, headers: varying };
  return showContent(await compress(markup, { level: LEVEL }), headers);
}
