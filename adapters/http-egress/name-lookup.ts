/**
 * From a name to all of its addresses.
 *
 * Must stay true: a lookup ends when it is told to and holds no thread of Node's pool, where a name server that does
 * not answer would stop files and password hashes as well: hence c-ares and not getaddrinfo.
 */
import { Resolver } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { asciiLowerCase } from '../../core/kernel/text.ts';
import type { OutgoingFailure } from '../../core/ports/outgoing-requests.ts';
import { codeOf } from './failures.ts';

export type Lookup =
  | { readonly addresses: readonly string[] }
  | {
      readonly unresolved: Extract<OutgoingFailure, 'name-not-found' | 'name-lookup-failed'>;
      readonly detail: string | null;
    };

/** Looks a host name up; rejects only with the signal's reason. */
export type NameLookup = (name: string, signal: AbortSignal) => Promise<Lookup>;

export interface NameLookupOptions {
  /** `address:port` of name servers; absent: those of the system. */
  readonly servers?: readonly string[];
  readonly hostsFile?: string;
}

const TRY_SPAN_MS = 2_000;
const TRIES_MAX = 3;
const LOOPBACK = ['127.0.0.1', '::1'];
/** What c-ares says of a name without addresses. */
const ABSENT = new Set(['ENOTFOUND', 'ENODATA']);

/** By the hosts file first, then by name servers, A and AAAA both. Names of `localhost` are the loopback (RFC 6761). */
export function createNameLookup(options: NameLookupOptions = {}): NameLookup {
  const { servers, hostsFile = '/etc/hosts' } = options;
  return async (name, signal) => {
    const wanted = asciiLowerCase(name).replace(/\.$/, '');
    if (/(^|\.)localhost$/.test(wanted)) return { addresses: LOOPBACK };
    const listed = await addressesInFile(hostsFile, wanted);
    if (listed.length > 0) return { addresses: listed };
    // Told meanwhile, it would not be told again.
    signal.throwIfAborted();
    const resolver = new Resolver({ timeout: TRY_SPAN_MS, tries: TRIES_MAX });
    if (servers !== undefined) resolver.setServers(servers);
    const cancel = (): void => resolver.cancel();
    signal.addEventListener('abort', cancel, { once: true });
    try {
      const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
      signal.throwIfAborted();
      return gathered(answers);
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  };
}

/** An answer of either family is enough to go on with, and all of it is checked. */
function gathered(answers: readonly PromiseSettledResult<string[]>[]): Lookup {
  const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  if (addresses.length > 0) return { addresses };
  const codes = answers.flatMap((answer) => (answer.status === 'rejected' ? [codeOf(answer.reason)] : []));
  const trouble = codes.find((code) => code === null || !ABSENT.has(code));
  if (trouble !== undefined) return { unresolved: 'name-lookup-failed', detail: trouble };
  return { unresolved: 'name-not-found', detail: codes[0] ?? null };
}

async function addressesInFile(file: string, name: string): Promise<readonly string[]> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch {
    // Not every system has one, and nobody need let us read it.
    return [];
  }
  return text.split('\n').flatMap((line) => {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
    return isIP(address) !== 0 && names.some((listed) => asciiLowerCase(listed) === name) ? [address] : [];
  });
}
