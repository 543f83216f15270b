/**
 * Certificates that a test makes when it runs: an authority, and certificates that it signs.
 *
 * Invariants: every key lives in memory and is gone after the test; nothing outside of the process trusts these
 * certificates.
 */
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { isIP } from 'node:net';

export interface Certificate {
  /** PEM. */
  readonly cert: string;
  readonly key: string;
}

export interface Authority {
  /** The authority's own certificate, in PEM. */
  readonly cert: string;
  /**
   * Signs a certificate for these host names and addresses. It is valid from a day ago until a day from now, unless
   * `expired` is set.
   */
  issue(hosts: readonly string[], options?: { readonly expired?: boolean }): Certificate;
}

const DAY_MS = 86_400_000;
const ECDSA_WITH_SHA256 = sequence(oid('2a8648ce3d040302'));

export function createAuthority(name = 'Strata test authority'): Authority {
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const certify = (subject: string, publicKey: KeyObject, extensions: readonly Buffer[], until: number): string => {
    const body = sequence(
      tagged(0xa0, integer(2)),
      tagged(0x02, Buffer.concat([Buffer.of(1), randomBytes(8)])),
      ECDSA_WITH_SHA256,
      nameOf(name),
      sequence(time(until - 2 * DAY_MS), time(until)),
      nameOf(subject),
      publicKey.export({ type: 'spki', format: 'der' }),
      tagged(0xa3, sequence(...extensions)),
    );
    const signature = sign('sha256', body, keys.privateKey);
    const der = sequence(body, ECDSA_WITH_SHA256, tagged(0x03, Buffer.concat([Buffer.of(0), signature])));
    const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
    return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
  };
  const basicConstraints = (isAuthority: boolean): Buffer =>
    sequence(oid('551d13'), octets(isAuthority ? sequence(tagged(0x01, Buffer.of(0xff))) : sequence()));
  return {
    cert: certify(name, keys.publicKey, [basicConstraints(true)], Date.now() + DAY_MS),
    issue(hosts, { expired = false } = {}) {
      const leaf = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const names = sequence(oid('551d11'), octets(sequence(...hosts.map(generalName))));
      const until = Date.now() + (expired ? -DAY_MS : DAY_MS);
      return {
        cert: certify(hosts[0] ?? 'nobody', leaf.publicKey, [basicConstraints(false), names], until),
        key: leaf.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      };
    },
  };
}

/** Encodes a host name or an IPv4 address (RFC 5280, section 4.2.1.6). */
function generalName(host: string): Buffer {
  if (isIP(host) === 4) return tagged(0x87, Buffer.from(host.split('.').map(Number)));
  return tagged(0x82, Buffer.from(host, 'ascii'));
}

function nameOf(commonName: string): Buffer {
  return sequence(tagged(0x31, sequence(oid('550403'), tagged(0x0c, Buffer.from(commonName, 'utf8')))));
}

function time(ms: number): Buffer {
  return tagged(0x18, Buffer.from(`${new Date(ms).toISOString().replaceAll(/[-:T]|\..*/g, '')}Z`, 'ascii'));
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return tagged(0x30, Buffer.concat(parts));
}

function octets(content: Buffer): Buffer {
  return tagged(0x04, content);
}

function oid(hex: string): Buffer {
  return tagged(0x06, Buffer.from(hex, 'hex'));
}

function integer(value: number): Buffer {
  return tagged(0x02, Buffer.of(value));
}

/** Encodes tag, length and content in DER (X.690, section 8.1). */
function tagged(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const lengthBytes =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, Math.floor(length / 0x100), length % 0x100];
  return Buffer.concat([Buffer.of(tag, ...lengthBytes), content]);
}
