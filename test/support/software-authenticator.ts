/**
 * An authenticator for passkeys in software, and the browser in front of it: it makes credentials and signs challenges
 * as Web Authentication says, and misbehaves where a test asks it to. CBOR and COSE are written here, so that what the
 * service reads does not come from the library that the service reads it with.
 */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign, X509Certificate } from 'node:crypto';
import type { JsonObject } from '../../core/kernel/json.ts';

/** What the authenticator or the browser does differently than it should. */
export interface Misbehaviour {
  readonly origin?: string;
  readonly rpId?: string;
  readonly type?: string;
  readonly challenge?: string;
  readonly userVerified?: boolean;
  readonly userPresent?: boolean;
  readonly crossOrigin?: boolean;
  readonly signCount?: number;
  readonly userHandle?: string;
  /** Signs with the key of this credential under the id of the one that was asked for. */
  readonly signWith?: string;
  /** The attestation statement of a new credential: none, one with certificates, or one of another format. */
  readonly attestation?: readonly [format: string, statement: ReadonlyMap<string, Cbor>];
  /** Signs the new credential with this certificate, as the security keys of FIDO U2F do. Both in PEM. */
  readonly certified?: { readonly cert: string; readonly key: string };
  /** The length of the new credential's id. */
  readonly credentialIdBytes?: number;
  /** The length of the new public key: a member that nobody reads fills it up. */
  readonly publicKeyBytes?: number;
  /** Presents a credential that the authenticator holds already as a new one. */
  readonly reuse?: string | undefined;
}

export interface SoftwareAuthenticator {
  /**
   * Answers the options of a creation, as JSON. Refuses, as browsers do, if it holds one of the excluded credentials.
   */
  create(options: JsonObject, misbehaviour?: Misbehaviour): string;
  /** Answers the options of a sign-in with the first of the allowed credentials that it holds. */
  get(options: JsonObject, misbehaviour?: Misbehaviour): string;
  /** The ids of its credentials, oldest first. */
  readonly credentialIds: readonly string[];
  /** A copy with the same keys and counters, as a thief makes one. */
  clone(): SoftwareAuthenticator;
}

export type Cbor = number | string | Uint8Array | readonly Cbor[] | ReadonlyMap<number | string, Cbor>;

interface Credential {
  readonly id: string;
  readonly privateKey: KeyObject;
  readonly userHandle: string;
  signCount: number;
}

export interface AuthenticatorOptions {
  readonly origin: string;
  /** False for an authenticator whose counter is always 0. */
  readonly counts?: boolean;
  readonly algorithm?: 'ES256' | 'EdDSA' | 'RS256';
  readonly rsaBits?: number;
}

const USER_PRESENT = 0x01;
const USER_VERIFIED = 0x04;
const HAS_CREDENTIAL = 0x40;

export function createSoftwareAuthenticator(
  { origin, counts = true, algorithm = 'ES256', rsaBits = 2_048 }: AuthenticatorOptions,
  credentials: readonly Credential[] = [],
): SoftwareAuthenticator {
  const held = new Map(credentials.map((credential) => [credential.id, { ...credential }]));

  const clientData = (type: string, options: CeremonyOptions, more: Misbehaviour): Buffer =>
    Buffer.from(
      JSON.stringify({
        type: more.type ?? type,
        challenge: more.challenge ?? options.challenge,
        origin: more.origin ?? origin,
        crossOrigin: more.crossOrigin ?? false,
      }),
    );

  return {
    create(given, more = {}) {
      const options = ceremonyOptions(given);
      if (options.excludeCredentials?.some(({ id }) => held.has(id)) === true) throw new Error('InvalidStateError');
      const { publicKey, privateKey } = newKeyPair(algorithm, rsaBits);
      const id = more.reuse ?? randomBytes(more.credentialIdBytes ?? 16).toString('base64url');
      const credential = { id, privateKey, userHandle: options.user?.id ?? '', signCount: counts ? 1 : 0 };
      held.set(id, credential);
      const attested = attestedCredential(id, coseKey(publicKey, more.publicKeyBytes));
      const authData = authenticatorData(options.rp?.id ?? '', credential.signCount, more, attested);
      const client = clientData('webauthn.create', options, more);
      const [format, statement] =
        more.certified === undefined
          ? (more.attestation ?? (['none', new Map<string, Cbor>()] as const))
          : (['fido-u2f', u2fStatement(more.certified, authData, client, publicKey)] as const);
      const attestation = new Map<string, Cbor>([
        ['fmt', format],
        ['attStmt', statement],
        ['authData', authData],
      ]);
      const response = {
        clientDataJSON: client.toString('base64url'),
        attestationObject: Buffer.from(cbor(attestation)).toString('base64url'),
        transports: ['usb'],
      };
      return JSON.stringify({ id, rawId: id, type: 'public-key', clientExtensionResults: {}, response });
    },
    get(given, more = {}) {
      const options = ceremonyOptions(given);
      const credential = options.allowCredentials?.map(({ id }) => held.get(id)).find((one) => one !== undefined);
      if (credential === undefined) throw new Error('NotAllowedError');
      if (counts) credential.signCount += 1;
      const authData = authenticatorData(options.rpId ?? '', credential.signCount, more);
      const client = clientData('webauthn.get', options, more);
      const signed = Buffer.concat([authData, createHash('sha256').update(client).digest()]);
      const { privateKey } = held.get(more.signWith ?? credential.id) ?? credential;
      const response = {
        clientDataJSON: client.toString('base64url'),
        authenticatorData: authData.toString('base64url'),
        signature: sign(algorithm === 'EdDSA' ? null : 'sha256', signed, privateKey).toString('base64url'),
        userHandle: more.userHandle ?? credential.userHandle,
      };
      const { id } = credential;
      return JSON.stringify({ id, rawId: id, type: 'public-key', clientExtensionResults: {}, response });
    },
    get credentialIds() {
      return [...held.keys()];
    },
    clone: () => createSoftwareAuthenticator({ origin, counts, algorithm, rsaBits }, [...held.values()]),
  };
}

/** The members of a prompt's options that an authenticator reads. */
interface CeremonyOptions {
  readonly challenge: string;
  readonly rp?: { readonly id: string };
  readonly rpId?: string;
  readonly user?: { readonly id: string };
  readonly excludeCredentials?: readonly { readonly id: string }[];
  readonly allowCredentials?: readonly { readonly id: string }[];
}

function ceremonyOptions(options: JsonObject): CeremonyOptions {
  return options as unknown as CeremonyOptions;
}

/** Web Authentication, section 6.1. */
function authenticatorData(
  rpId: string,
  signCount: number,
  { userPresent = true, userVerified = true, ...more }: Misbehaviour,
  attested: Uint8Array = new Uint8Array(),
): Buffer {
  const flags =
    (userPresent ? USER_PRESENT : 0) | (userVerified ? USER_VERIFIED : 0) | (attested.length > 0 ? HAS_CREDENTIAL : 0);
  const counter = Buffer.alloc(4);
  counter.writeUInt32BE(more.signCount ?? signCount);
  const rpIdHash = createHash('sha256')
    .update(more.rpId ?? rpId)
    .digest();
  return Buffer.concat([rpIdHash, Buffer.from([flags]), counter, attested]);
}

/** Web Authentication, section 8.6. */
function u2fStatement(
  { cert, key }: { readonly cert: string; readonly key: string },
  authData: Buffer,
  client: Buffer,
  publicKey: KeyObject,
): ReadonlyMap<string, Cbor> {
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' });
  const idLength = authData.readUInt16BE(53);
  const signed = [
    Buffer.from([0]),
    authData.subarray(0, 32),
    createHash('sha256').update(client).digest(),
    authData.subarray(55, 55 + idLength),
    Buffer.from([4]),
    Buffer.from(x, 'base64url'),
    Buffer.from(y, 'base64url'),
  ];
  return new Map<string, Cbor>([
    ['x5c', [new X509Certificate(cert).raw]],
    ['sig', sign('sha256', Buffer.concat(signed), key)],
  ]);
}

function newKeyPair(algorithm: AuthenticatorOptions['algorithm'], rsaBits: number) {
  if (algorithm === 'EdDSA') return generateKeyPairSync('ed25519');
  if (algorithm === 'RS256') return generateKeyPairSync('rsa', { modulusLength: rsaBits });
  return generateKeyPairSync('ec', { namedCurve: 'P-256' });
}

/** The AAGUID, the id with its length, and the public key. */
function attestedCredential(credentialId: string, key: Uint8Array): Buffer {
  const id = Buffer.from(credentialId, 'base64url');
  const length = Buffer.alloc(2);
  length.writeUInt16BE(id.length);
  return Buffer.concat([Buffer.alloc(16), length, id, key]);
}

/** The COSE form of a key (RFC 9053, section 7; RFC 8230, section 4), filled up to `bytes` if given. */
function coseKey(publicKey: KeyObject, bytes?: number): Uint8Array {
  const { kty, x = '', y = '', n = '', e = '' } = publicKey.export({ format: 'jwk' });
  const member = (text: string): Buffer => Buffer.from(text, 'base64url');
  const members: readonly (readonly [number, Cbor])[] =
    kty === 'RSA'
      ? [
          [1, 3],
          [3, -257],
          [-1, member(n)],
          [-2, member(e)],
        ]
      : kty === 'OKP'
        ? [
            [1, 1],
            [3, -8],
            [-1, 6],
            [-2, member(x)],
          ]
        : [
            [1, 2],
            [3, -7],
            [-1, 1],
            [-2, member(x)],
            [-3, member(y)],
          ];
  const filled = (fill: number): Uint8Array => cbor(new Map([...members, [-99, Buffer.alloc(fill)]]));
  if (bytes === undefined) return cbor(new Map(members));
  // The head of a longer member takes more bytes.
  const fill = bytes - filled(256).length + 256;
  return filled(fill);
}

/** RFC 8949, section 3: the major types that WebAuthn uses. */
function cbor(value: Cbor): Uint8Array {
  if (typeof value === 'number') return value >= 0 ? cborHead(0, value) : cborHead(1, -1 - value);
  if (typeof value === 'string') {
    const bytes = Buffer.from(value, 'utf8');
    return Buffer.concat([cborHead(3, bytes.length), bytes]);
  }
  if (value instanceof Uint8Array) return Buffer.concat([cborHead(2, value.length), value]);
  if (value instanceof Map) {
    const members = [...value].flatMap(([key, item]) => [cbor(key), cbor(item)]);
    return Buffer.concat([cborHead(5, value.size), ...members]);
  }
  const items = value as readonly Cbor[];
  return Buffer.concat([cborHead(4, items.length), ...items.map(cbor)]);
}

function cborHead(major: number, argument: number): Buffer {
  const type = major << 5;
  if (argument < 24) return Buffer.from([type | argument]);
  if (argument < 0x100) return Buffer.from([type | 24, argument]);
  const head = Buffer.alloc(3);
  head.writeUInt8(type | 25);
  head.writeUInt16BE(argument, 1);
  return head;
}
