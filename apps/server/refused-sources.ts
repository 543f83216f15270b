/**
 * Adds the name of its source to the line of a refused request, so that an operator sees who guesses or floods.
 *
 * Invariants: no line holds an address, and only those of 401 and 429 hold a name.
 */
import type { IncomingMessage } from 'node:http';
import { sourceName } from '../../adapters/node/log-source.ts';
import type { ClientAddress } from './source-address.ts';

const REFUSED: ReadonlySet<number> = new Set([401, 429]);

/** Returns the field `source`, or no field. */
export type RefusedSource = (status: number, request: IncomingMessage) => { readonly source?: string };

export function createRefusedSource(key: string, clientAddress: ClientAddress): RefusedSource {
  return (status, request) => {
    if (!REFUSED.has(status)) return {};
    const address = clientAddress(request);
    return address === '' ? {} : { source: sourceName(key, address) };
  };
}
