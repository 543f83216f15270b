/** A certificate for 127.0.0.1 and localhost that signs itself (RFC 5280), new for each test. */
import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';

export interface SelfSigned {
  /** PEM. */
  readonly cert: string;
  readonly key: string;
}

/** Tags of ASN.1 types (X.690). */
const [INTEGER, BIT_STRING, OCTET_STRING, OBJECT, UTF8, TIME, SEQUENCE, SET] = [2, 3, 4, 6, 12, 24, 48, 49];
const CONTEXT = 0xa0;
const ECDSA_WITH_SHA256 = '2a8648ce3d040302';
const COMMON_NAME = '550403';
const BASIC_CONSTRAINTS = '551d13';
const SUBJECT_ALT_NAME = '551d11';

/** Expires in 2099 unless another time is named. */
export function selfSignedCertificate(expiresAt = new Date('2099-01-01T00:00:00Z')): SelfSigned {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const algorithm = der(SEQUENCE, object(ECDSA_WITH_SHA256));
  const name = der(SEQUENCE, der(SET, der(SEQUENCE, object(COMMON_NAME), der(UTF8, Buffer.from('Strata test')))));
  const time = (text: string): Buffer => der(TIME, Buffer.from(text));
  const names = der(SEQUENCE, der(0x82, Buffer.from('localhost')), der(0x87, Buffer.from([127, 0, 0, 1])));
  const authority = der(SEQUENCE, Buffer.from('0101ff', 'hex'));
  const body = der(
    SEQUENCE,
    der(CONTEXT, der(INTEGER, Buffer.from([2]))),
    der(INTEGER, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    algorithm,
    name,
    der(SEQUENCE, time('20200101000000Z'), time(`${expiresAt.toISOString().replace(/\D/g, '').slice(0, 14)}Z`)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(CONTEXT + 3, der(SEQUENCE, extension(BASIC_CONSTRAINTS, authority), extension(SUBJECT_ALT_NAME, names))),
  );
  const signature = Buffer.concat([Buffer.from([0]), sign('sha256', body, privateKey)]);
  const certificate = der(SEQUENCE, body, algorithm, der(BIT_STRING, signature));
  const lines = certificate.toString('base64').replace(/.{64}/g, '$&\n');
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

function extension(id: string, content: Buffer): Buffer {
  return der(SEQUENCE, object(id), der(OCTET_STRING, content));
}

function object(hex: string): Buffer {
  return der(OBJECT, Buffer.from(hex, 'hex'));
}

/** Encodes one element; a length of 128 or more takes one or two more bytes. */
function der(tag: number | undefined, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag ?? 0, ...size]), content]);
}
