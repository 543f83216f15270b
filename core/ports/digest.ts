/** Hashes, from the platform: core computes none itself. */

export interface Digest {
  /** SHA-256 of the UTF-8 of a text, hex. */
  sha256(text: string): string;
  /** SHA-256 of bytes, hex. */
  sha256OfBytes(bytes: Uint8Array): string;
  /** HMAC-SHA256 (RFC 2104) of the UTF-8 of a text, keyed with that of another, hex. */
  hmacSha256(key: string, text: string): string;
  /** Whether two texts are equal, in time that depends on their lengths only. */
  equal(a: string, b: string): boolean;
}
