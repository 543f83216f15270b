/**
 * How Temporal is spoken to: where it is, and what proves both ends to each other.
 *
 * Must stay true: the client and the workers speak the same way; without TLS no key is sent.
 */

export interface Line {
  /** `host:port` of the frontend. */
  readonly address: string;
  /** Null: in the clear. */
  readonly tls?: {
    /** PEM; null: the authorities that the machine trusts. */
    readonly ca: Uint8Array | null;
    /** PEM, for a server that asks its clients who they are. */
    readonly client: { readonly cert: Uint8Array; readonly key: Uint8Array } | null;
  } | null;
  /** Sent with every call; null for none. */
  readonly apiKey?: string | null;
}

interface LineOptions {
  readonly address: string;
  readonly tls: {
    serverRootCACertificate?: Uint8Array;
    clientCertPair?: { crt: Uint8Array; key: Uint8Array };
  } | null;
  readonly apiKey?: string;
}

/** As the SDK takes it, for a client and for a worker alike. */
export function lineOptions({ address, tls = null, apiKey = null }: Line): LineOptions {
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
