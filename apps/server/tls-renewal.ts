/**
 * Takes a renewed TLS certificate while the server runs: connections from then on get it, open ones keep theirs.
 *
 * Invariants: the server always has a certificate with its key. A pair that cannot be used, as while one of the two
 * files is already replaced, changes nothing and is logged once; the next look may find it whole.
 */
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import type { Log } from '../../core/ports/log.ts';

/** PEM, with the files that it was read from. */
export interface TlsPair {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly certFile: string;
  readonly keyFile: string;
}

export interface TlsRenewal {
  /** Reads the files, and takes them if they changed. Never rejects. */
  look(): Promise<void>;
  /** When the certificate that the server has expires, in milliseconds since 1970. */
  expiresAtMs(): number;
}

export function createTlsRenewal(options: {
  readonly server: { setSecureContext(context: SecureContextOptions): void };
  /** What the server has. */
  readonly tls: TlsPair;
  readonly log: Log;
}): TlsRenewal {
  const { server, log } = options;
  const { certFile, keyFile } = options.tls;
  let taken: Pick<TlsPair, 'cert' | 'key'> = options.tls;
  let refused = '';
  const refuse = (error: unknown, what: string): void => {
    if (what === refused) return;
    refused = what;
    log.error(
      { err: error, certFile, keyFile },
      'The renewed TLS certificate cannot be used: the server keeps the one it has',
    );
  };
  const isTaken = ({ cert, key }: Pick<TlsPair, 'cert' | 'key'>) => cert.equals(taken.cert) && key.equals(taken.key);
  return {
    expiresAtMs: () => new X509Certificate(taken.cert).validToDate.getTime(),
    async look() {
      try {
        const pair = { cert: await readFile(certFile), key: await readFile(keyFile) };
        if (isTaken(pair)) return;
        try {
          // Throws for what is no certificate or key, and for a key of another certificate.
          createSecureContext(pair);
          server.setSecureContext(pair);
        } catch (error) {
          refuse(error, `${pair.cert.toString('base64')} ${pair.key.toString('base64')}`);
          return;
        }
        taken = pair;
        refused = '';
        log.info({ certFile }, 'The renewed TLS certificate is used from now on');
      } catch (error) {
        refuse(error, error instanceof Error ? error.message : 'unreadable');
      }
    },
  };
}
