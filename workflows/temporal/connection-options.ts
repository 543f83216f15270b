/**
 * How to connect to Temporal: its address, and the credentials of both sides.
 *
 * Invariants: the client and the workers connect in the same way; without TLS no key is sent.
 */

export interface TemporalConnection {
  /** `host:port` of the frontend. */
  readonly address: string;
  /** Null: without encryption. */
  readonly tls?: {
    /** PEM; null: the authorities that the machine trusts. */
    readonly ca: Uint8Array | null;
    /** The client's certificate and key in PEM, for a server that requires them; null for none. */
    readonly client: { readonly cert: Uint8Array; readonly key: Uint8Array } | null;
  } | null;
  /** Sent with every call; null for none. */
  readonly apiKey?: string | null;
}

interface ConnectionOptions {
  readonly address: string;
  readonly tls: {
    serverRootCACertificate?: Uint8Array;
    clientCertPair?: { crt: Uint8Array; key: Uint8Array };
  } | null;
  readonly apiKey?: string;
}

/** Returns the options in the SDK's form, for a client and for a worker. */
export function connectionOptions({ address, tls = null, apiKey = null }: TemporalConnection): ConnectionOptions {
  if (tls === null) return { address, tls };
  const { ca, client } = tls;
  return {
    address,
    tls: {
      ...(ca === null ? {} : { serverRootCACertificate: ca }),
      ...(client === null ? {} : { clientCertPair: { crt: client.cert, key: client.key } }),
    },
    ...(apiKey === null ? {} : { apiKey }),
  };
}
