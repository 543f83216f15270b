/**
 * Identity tokens of this service (core/ports/identity-issuer.ts), signed with the keys of the ring.
 *
 * Invariants: every token has an id of its own, and the issuer that the discovery document names.
 */
import { msBetween, timestamp } from '../../kernel/ids.ts';
import type { Clock, Ids } from '../../ports/clock.ts';
import type { IdentityIssuer } from '../../ports/identity-issuer.ts';
import type { TokenSigning } from '../../ports/signing-keys.ts';
import { publicSets, signingSet } from './key-schedule.ts';
import type { KeyRing } from './signing-key-ring.ts';

/**
 * How long an identity token of this service holds. Internal: it is a figure in each token, which its readers judge.
 */
export const IDENTITY_TOKEN_SPAN_SECONDS = 300;

export interface IssuerOptions {
  /** The service's base URL: the port may be known only after the server listens. */
  readonly issuer: () => string;
  readonly keys: KeyRing;
  readonly signing: TokenSigning;
  readonly clock: Clock;
  readonly ids: Ids;
}

const EPOCH = timestamp('1970-01-01T00:00:00.000Z');
/** A cloud whose clock is behind would refuse a token that begins now. */
const SKEW_SECONDS = 60;

export function createIdentityIssuer({ issuer, keys, signing, clock, ids }: IssuerOptions): IdentityIssuer {
  return {
    async issue({ audience, subject, algorithm = 'RS256' }) {
      const sets = await keys();
      const now = clock.now();
      const key = signingSet(sets, now)?.keys.find((one) => one.algorithm === algorithm);
      if (key === undefined) throw new TypeError(`The signing set has no key for ${algorithm}`);
      const iat = Math.floor(msBetween(EPOCH, now) / 1_000);
      const times = { iat, nbf: iat - SKEW_SECONDS, exp: iat + IDENTITY_TOKEN_SPAN_SECONDS };
      return signing.sign(key, { iss: issuer(), aud: audience, sub: subject, ...times, jti: ids.next() });
    },
    async publicKeys() {
      const sets = await keys();
      return publicSets(sets, clock.now()).flatMap((set) => set.keys.map((key) => signing.publicKey(key)));
    },
  };
}
