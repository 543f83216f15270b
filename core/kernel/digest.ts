/** Hash functions of the platform: core implements none. */

export interface Digest {
  /** Returns the SHA-256 of the text's UTF-8, in hex. */
  sha256(text: string): string;
  /** Returns the SHA-256 of the bytes, in hex. */
  sha256OfBytes(bytes: Uint8Array): string;
  /** Begins the SHA-256 of bytes that come in parts. */
  startSha256(): RunningSha256;
  /** Returns the HMAC-SHA256 (RFC 2104) of the text's UTF-8, keyed with the key's UTF-8, in hex. */
  hmacSha256(key: string, text: string): string;
  /** Returns the CRC-32 (IEEE) of the text's UTF-8. */
  crc32(text: string): number;
  /** Returns whether two texts are equal, in time that depends only on their lengths. */
  equal(a: string, b: string): boolean;
}

export interface RunningSha256 {
  add(bytes: Uint8Array): void;
  /** Returns the digest of everything that was added, in hex. Nothing may be added afterwards. */
  hex(): string;
}
