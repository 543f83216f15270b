/**
 * Looks up all addresses of a host name.
 *
 * Invariants: a lookup ends when its signal aborts, and holds no thread of Node's pool. There a name server that
 * does not answer would stop files and password hashes as well, so this uses c-ares and not getaddrinfo.
 */
import { Resolver } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import type { OutgoingFailure } from '../../core/kernel/exchange.ts';
import { asciiLowerCase } from '../../core/kernel/text.ts';
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
  /** `address:port` of name servers; when absent, those of the system. */
  readonly servers?: readonly string[];
  readonly hostsFile?: string;
}

const TRY_TIMEOUT_MS = 2_000;
/** How often a name server is asked. Internal: it is the pace of attempts. */
const TRIES_MAX = 3;

const LOOPBACK = ['127.0.0.1', '::1'];
/** The codes of c-ares for a name without addresses. */
const ABSENT = new Set(['ENOTFOUND', 'ENODATA']);

/** Reads the hosts file first, then queries name servers for A and AAAA. `localhost` is the loopback (RFC 6761). */
export function createNameLookup(options: NameLookupOptions = {}): NameLookup {
  const { servers, hostsFile = '/etc/hosts' } = options;
  return async (name, signal) => {
    const wanted = asciiLowerCase(name).replace(/\.$/, '');
    if (/(^|\.)localhost$/.test(wanted)) return { addresses: LOOPBACK };
    const listed = await addressesInFile(hostsFile, wanted);
    if (listed.length > 0) return { addresses: listed };
    // A signal that aborted during the read fires no event any more.
    signal.throwIfAborted();
    const resolver = new Resolver({ timeout: TRY_TIMEOUT_MS, tries: TRIES_MAX });
    if (servers !== undefined) resolver.setServers(servers);
    const cancel = (): void => resolver.cancel();
    signal.addEventListener('abort', cancel, { once: true });
    try {
      const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
      signal.throwIfAborted();
      return lookupOf(answers);
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  };
}

/** The addresses of one family are enough. The caller checks all of them. */
function lookupOf(answers: readonly PromiseSettledResult<string[]>[]): Lookup {
  const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  if (addresses.length > 0) return { addresses };
  const codes = answers.flatMap((answer) => (answer.status === 'rejected' ? [codeOf(answer.reason)] : []));
  const failure = codes.find((code) => code === null || !ABSENT.has(code));
  if (failure !== undefined) return { unresolved: 'name-lookup-failed', detail: failure };
  return { unresolved: 'name-not-found', detail: codes[0] ?? null };
}

async function addressesInFile(file: string, name: string): Promise<readonly string[]> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch {
    // The system may have no such file, or not let this user read it.
    return [];
  }
  return text.split('\n').flatMap((line) => {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
    return isIP(address) !== 0 && names.some((listed) => asciiLowerCase(listed) === name) ? [address] : [];
  });
}
