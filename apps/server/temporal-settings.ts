/**
 * The settings of Temporal: `STRATA_WORKFLOWS`, and where the server of workflows is.
 *
 * Must stay true: neither the API key nor an address that holds credentials is written anywhere, and no API key
 * travels in the clear.
 */
import type { SettingsReader } from './settings-reader.ts';

export interface TemporalSettings {
  /** `host:port` of the frontend. */
  readonly address: string;
  readonly namespace: string;
  /** Null: in the clear. */
  readonly tls: {
    /** PEM; null: the authorities that this machine trusts. */
    readonly ca: Buffer | null;
    /** PEM, for a server that asks its clients who they are. */
    readonly client: { readonly cert: Buffer; readonly key: Buffer } | null;
  } | null;
  readonly apiKey: string | null;
}

/** Null where the engine is the embedded one; the settings are read, and what cannot be used is a fault, in any case. */
export function readTemporalSettings({ text, fault, file, oneOf }: SettingsReader): TemporalSettings | null {
  const chosen = oneOf('STRATA_WORKFLOWS', ['embedded', 'temporal'], 'embedded') === 'temporal';
  const address = text('STRATA_TEMPORAL_ADDRESS');
  if ((chosen || address !== null) && !isHostAndPort(address)) {
    fault('STRATA_TEMPORAL_ADDRESS', shownAddress(address), "the frontend's host and port, such as temporal:7233");
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

/** What is before an @ may be a password. */
function shownAddress(address: string | null): string {
  if (address === null) return 'not set';
  return address.includes('@') ? 'set, but with something before an @' : JSON.stringify(address);
}
