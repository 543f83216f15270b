/** Content negotiation between JSON and raw bytes: RFC 9110, section 12.5.1. */
import type { IncomingHttpHeaders } from 'node:http';
import { weightIn } from '../../front-door/accepted-coding.ts';

/** Whether the answer is raw bytes: the parameter `raw` says so, or without it the Accept header. */
export function wantsBytes({ accept }: IncomingHttpHeaders, raw: 'true' | 'false' | undefined): boolean {
  return raw === undefined ? prefersBytes(accept) : raw === 'true';
}

/** Whether an Accept header prefers application/octet-stream to application/json. A tie is JSON. */
function prefersBytes(accept: string | undefined): boolean {
  if (accept === undefined || !accept.includes('octet-stream')) return false;
  return qualityOf(accept, 'application/octet-stream') > qualityOf(accept, 'application/json');
}

/** Returns the quality of the most specific range that matches the media type; 0 if none matches. */
function qualityOf(accept: string, type: string): number {
  const specificity = [type, `${type.slice(0, type.indexOf('/'))}/*`, '*/*'];
  let best = specificity.length;
  let quality = 0;
  for (const part of accept.split(',')) {
    const [range = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase());
    const at = specificity.indexOf(range);
    if (at === -1 || at >= best) continue;
    best = at;
    quality = weightIn(parameters);
  }
  return quality;
}
