/**
 * Parses the `esdb://` address of EventStoreDB. Strata does it, not EventStoreDB's client.
 *
 * Invariants: every part of an address is honoured or refused, never dropped. The client drops credentials without
 * TLS, the end of a password behind a colon, `tlsVerifyCert`, and every option it does not know. No error message here
 * holds a secret.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';

export interface Endpoint {
  readonly address: string;
  readonly port: number;
}

export interface EventStoreDbConnection {
  readonly hosts: readonly [Endpoint, ...Endpoint[]];
  /** True when the one host is a DNS name of the cluster: the client finds the leader by gossip. */
  readonly discover: boolean;
  /** Null for a connection without TLS. */
  readonly tls: {
    readonly ca?: Buffer;
    readonly clientCertificate?: { readonly cert: Buffer; readonly key: Buffer };
  } | null;
  readonly credentials: { readonly username: string; readonly password: string } | null;
  readonly tuning: Readonly<Partial<Record<Tuning, number>>>;
}

type Tuning = (typeof TUNING)[number];
const TUNING = [
  'maxDiscoverAttempts',
  'discoveryInterval',
  'gossipTimeout',
  'keepAliveInterval',
  'keepAliveTimeout',
] as const;

const PORT_DEFAULT = 2113;
/**
 * For a shorter interval the client writes a warning to standard output. Internal: only the operator's setting reaches
 * it.
 */
const KEEP_ALIVE_INTERVAL_MS_MIN = 10_000;

const FILES = ['tlsCAFile', 'userCertFile', 'userKeyFile'] as const;
/** Options that the client knows, but that break this adapter or have no use in it; by their flattened names. */
const REFUSED: { readonly [option: string]: string } = {
  defaultdeadline: 'is not taken: calls are timed here, not by the server',
  throwonappendfailure: 'is not taken: with false the client returns wrong results',
  connectionname: 'is not taken',
};

/** Thrown for an address that cannot be used; the message says why and holds no secret. */
export class UnusableAddressError extends Error {
  override readonly name = 'UnusableAddressError';
}

/**
 * Reads `esdb://[user:password@]host[:port][,host…][?option=value&…]`, or `esdb+discover://` with one host; user and
 * password percent-encoded. Reads the files that it names, relative to `folder`. Throws `UnusableAddressError`.
 */
export function parseEventStoreDbAddress(text: string, folder: string): EventStoreDbConnection {
  const parts = /^esdb(\+discover)?:\/\/(?:([^@/?]*)@)?([^@/?]+)\/?(?:\?(.*))?$/.exec(text.trim());
  if (parts === null) {
    throw new UnusableAddressError('it does not read esdb://user:password@host:port?tls=…');
  }
  const [, plus, user, hostList = '', query = ''] = parts;
  const discover = plus !== undefined;
  const [first, ...others] = hostList.split(',').map(endpointOf);
  if (first === undefined || (discover && others.length > 0)) {
    throw new UnusableAddressError('esdb+discover:// takes one host; name the nodes themselves after esdb://');
  }
  const options = optionsOf(query);
  const credentials = user === undefined ? null : credentialsOf(user);
  const tls = tlsOf(options, credentials !== null, folder);
  return { hosts: [first, ...others], discover, tls, credentials, tuning: tuningOf(options) };
}

function endpointOf(text: string): Endpoint {
  const [, address, port = String(PORT_DEFAULT)] = /^(\[[0-9a-fA-F:.]+\]|[^:[\]\s]+)(?::(\d{1,5}))?$/.exec(text) ?? [];
  if (address === undefined || Number(port) < 1 || Number(port) > 65_535) {
    // The message does not repeat the text: in a malformed address it may be a part of the password.
    throw new UnusableAddressError('after the credentials it has no host and port');
  }
  return { address, port: Number(port) };
}

function credentialsOf(text: string): { username: string; password: string } {
  const [username = '', password = '', ...rest] = text.split(':');
  if (username === '' || password === '' || rest.length > 0) {
    throw new UnusableAddressError('credentials are user:password, with every other : and @ percent-encoded');
  }
  try {
    return { username: decodeURIComponent(username), password: decodeURIComponent(password) };
  } catch (error) {
    if (!(error instanceof URIError)) throw error;
    throw new UnusableAddressError('its credentials are not percent-encoded', { cause: error });
  }
}

/** The options by their flattened names: in lower case and without - and _, as the client compares them. */
function optionsOf(query: string): ReadonlyMap<string, string> {
  const known = ['tls', 'tlsVerifyCert', 'nodePreference', ...FILES, ...TUNING].map((name) => name.toLowerCase());
  const options = new Map<string, string>();
  if (query.includes('@')) throw new UnusableAddressError('its options hold an @: percent-encode credentials');
  for (const [name, value] of new URLSearchParams(query.replaceAll('+', '%2B'))) {
    const flat = name.toLowerCase().replace(/[_-]/g, '');
    const refused = REFUSED[flat];
    if (refused !== undefined) throw new UnusableAddressError(`${name} ${refused}`);
    if (!known.includes(flat)) throw new UnusableAddressError(`there is no option ${JSON.stringify(name)}`);
    if (options.has(flat)) throw new UnusableAddressError(`${name} is given twice`);
    options.set(flat, value);
  }
  const preference = options.get('nodepreference') ?? 'leader';
  // Only the leader's answers are certain to be as new as the log.
  if (preference.toLowerCase() !== 'leader') throw new UnusableAddressError('nodePreference must be leader');
  return options;
}

function booleanOf(options: ReadonlyMap<string, string>, name: string): boolean {
  const value = options.get(name.toLowerCase()) ?? 'true';
  if (value !== 'true' && value !== 'false') throw new UnusableAddressError(`${name} is true or false`);
  return value === 'true';
}

function tlsOf(
  options: ReadonlyMap<string, string>,
  withCredentials: boolean,
  folder: string,
): EventStoreDbConnection['tls'] {
  if (!booleanOf(options, 'tlsVerifyCert')) {
    throw new UnusableAddressError('tlsVerifyCert=false is ignored by the client; name the authority with tlsCAFile');
  }
  const files = FILES.map((name) => readNamed(options.get(name.toLowerCase()), name, folder));
  const [ca, cert, key] = files;
  if (!booleanOf(options, 'tls')) {
    if (withCredentials) {
      throw new UnusableAddressError('with tls=false the client sends no credentials: leave out one of them');
    }
    if (files.some((file) => file !== undefined)) throw new UnusableAddressError('tls=false leaves no use for files');
    return null;
  }
  if ((cert === undefined) !== (key === undefined)) {
    throw new UnusableAddressError('userCertFile and userKeyFile go together');
  }
  const clientCertificate = cert === undefined || key === undefined ? undefined : { cert, key };
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(clientCertificate === undefined ? {} : { clientCertificate }),
  };
}

function readNamed(file: string | undefined, option: string, folder: string): Buffer | undefined {
  if (file === undefined) return undefined;
  try {
    return readFileSync(path.resolve(folder, file));
  } catch (error) {
    throw new UnusableAddressError(`${option} names no readable file: ${file}`, { cause: error });
  }
}

function tuningOf(options: ReadonlyMap<string, string>): EventStoreDbConnection['tuning'] {
  const tuning: Partial<Record<Tuning, number>> = {};
  for (const name of TUNING) {
    const value = options.get(name.toLowerCase());
    if (value === undefined) continue;
    const min = name === 'keepAliveInterval' ? KEEP_ALIVE_INTERVAL_MS_MIN : 1;
    if (!/^\d{1,7}$/.test(value) || Number(value) < min) {
      throw new UnusableAddressError(`${name} is a whole number from ${min} on`);
    }
    tuning[name] = Number(value);
  }
  return tuning;
}
