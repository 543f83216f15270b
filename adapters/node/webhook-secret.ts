/**
 * Secrets of webhooks: `whsec_` and 40 base62 digits.
 *
 * Invariants: the whole text, as UTF-8, is the key of a delivery's HMAC; every digit is drawn without bias.
 */
import { randomBase62 } from './token-secret.ts';

const SECRET_DIGITS = 40;

export function newWebhookSecret(): string {
  return `whsec_${randomBase62(SECRET_DIGITS)}`;
}
