// accepted
/** 40 base62 digits are a secret, and no object id. */
export const SECRET = /^strata_([0-9A-Za-z]{40})$/;
export const TRIES_MAX = 20;
const MINUTE_MS = 60_000;
export const WAIT_MS = 20 * 60_000;
export const LONG_WAIT_MS = 20 * MINUTE_MS;

export function lastGroups(uuid: string): readonly string[] {
  return [uuid.slice(16, 20), uuid.slice(20)];
}

export function idAt(bytes: Uint8Array, at: number, idBytes: number): Uint8Array {
  return bytes.subarray(at, at + idBytes);
}
