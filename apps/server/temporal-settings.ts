/**
 * The settings of Temporal: `STRATA_WORKFLOWS` and `STRATA_TEMPORAL_*`.
 *
 * Invariants: neither the API key nor an address that holds credentials is printed or logged, and no API key is
 * sent without TLS.
 */
import type { SettingsReader } from './settings-reader.ts';

export interface TemporalSettings {
  /** `host:port` of the frontend. */
  readonly address: string;
  readonly namespace: string;
  /** Null: without TLS. */
  readonly tls: {
    /** PEM; null: the certificate authorities that this machine trusts. */
    readonly ca: Buffer | null;
    /** PEM, for a server that requires client certificates. */
    readonly client: { readonly cert: Buffer; readonly key: Buffer } | null;
  } | null;
  readonly apiKey: string | null;
}

/** Returns null for the embedded engine. The settings are read and checked in either case. */
export function readTemporalSettings({ text, fault, file, oneOf }: SettingsReader): TemporalSettings | null {
  const chosen = oneOf('STRATA_WORKFLOWS', ['embedded', 'temporal'], 'embedded') === 'temporal';
  const address = text('STRATA_TEMPORAL_ADDRESS');
  if ((chosen || address !== null) && !isHostAndPort(address)) {
    fault('STRATA_TEMPORAL_ADDRESS', printableAddress(address), "the frontend's host and port, such as temporal:7233");
  }
  const namespace = text('STRATA_TEMPORAL_NAMESPACE') ?? 'default';
  if (!/^[A-Za-z0-9][A-Za-z0-9_.-]{1,254}$/.test(namespace)) {
    fault('STRATA_TEMPORAL_NAMESPACE', JSON.stringify(namespace), 'the name of a namespace, such as default');
  }
  const apiKey = text('STRATA_TEMPORAL_API_KEY');
  if (apiKey !== null && !/^[\x21-\x7e]+$/.test(apiKey)) {
    fault('STRATA_TEMPORAL_API_KEY', 'set, but no key', 'visible characters of ASCII without spaces');
  }
  const certificates = {
    ca: file('STRATA_TEMPORAL_TLS_CA'),
    cert: file('STRATA_TEMPORAL_TLS_CERT'),
    key: file('STRATA_TEMPORAL_TLS_KEY'),
  };
  const [certGiven, keyGiven] = ['CERT', 'KEY'].map((name) => text(`STRATA_TEMPORAL_TLS_${name}`) !== null);
  if (certGiven !== keyGiven) {
    const [missing, given] = certGiven === true ? ['KEY', 'CERT'] : ['CERT', 'KEY'];
    fault(`STRATA_TEMPORAL_TLS_${missing}`, 'not set', `both it and STRATA_TEMPORAL_TLS_${given}, or neither`);
  }
  const wantsTls = apiKey !== null || Object.values(certificates).some((content) => content !== null);
  const tls = oneOf('STRATA_TEMPORAL_TLS', ['true', 'false'], wantsTls ? 'true' : 'false') === 'true';
  if (wantsTls && !tls) fault('STRATA_TEMPORAL_TLS', '"false"', 'true, with an API key or certificates');
  if (!chosen || address === null) return null;
  const { ca, cert, key } = certificates;
  const client = cert !== null && key !== null ? { cert, key } : null;
  return { address, namespace, tls: tls ? { ca, client } : null, apiKey };
}

function isHostAndPort(text: string | null): boolean {
  const [, port = ''] =
    /^(?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?):(\d{1,5})$/.exec(text ?? '') ?? [];
  return Number(port) >= 1 && Number(port) <= 65_535;
}

/** The text before an @ may be a password, so it is not printed. */
function printableAddress(address: string | null): string {
  if (address === null) return 'not set';
  return address.includes('@') ? 'set, but with something before an @' : JSON.stringify(address);
}
