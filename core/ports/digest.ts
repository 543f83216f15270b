/** Hashes, from the platform: core computes none itself. */

export interface Digest {
  /** SHA-256 of the UTF-8 of a text, hex. */
  sha256(text: string): string;
  /** Whether two texts are equal, in time that depends on their lengths only. */
  equal(a: string, b: string): boolean;
}
