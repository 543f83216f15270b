/**
 * Password hashes by argon2id: 19 MiB, two passes, one lane (OWASP's first choice).
 *
 * Must stay true: at most two run at once, and one processor is left for everything else where there are several. So a
 * flood of sign-ins takes bounded memory and leaves threads of Node's pool (four by default) for files. At most `PASSWORDS_WAITING_MAX` wait, so that nobody waits longer
 * than a few seconds.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { type PasswordHasher, PasswordHasherError } from '../../core/ports/password-hasher.ts';
import { createConcurrencyLimit } from '../../core/kernel/concurrency-limit.ts';
import { PASSWORDS_WAITING_MAX } from '../../core/kernel/limits.ts';
import { type Argon2id, findArgon2id } from './argon2id.ts';

const MEMORY_KIB = 19 * 1024;
const PASSES = 2;
const TAG_LENGTH_BYTES = 32;
const SALT_LENGTH_BYTES = 16;
const CONCURRENT_MAX = Math.max(1, Math.min(2, availableParallelism() - 1));

/** PHC string: `$argon2id$v=19$m=…,t=…,p=1$<salt>$<tag>`, base64 without padding. */
const PHC = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=1\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;

/** A hash with today's parameters, of which no password is known: its tag was chosen, not computed. */
const NOBODYS_HASH = `$argon2id$v=19$m=${MEMORY_KIB},t=${PASSES},p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`;

export function createPasswordHasher(
  argon2id: Argon2id = findArgon2id(),
  concurrentMax: number = CONCURRENT_MAX,
): PasswordHasher {
  const oneOfFew = createConcurrencyLimit(concurrentMax);
  let begun = 0;
  const expectRoom = (): void => {
    if (begun >= concurrentMax + PASSWORDS_WAITING_MAX) throw new PasswordHasherError('Too many passwords wait');
  };
  const bounded = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    expectRoom();
    begun += 1;
    try {
      return await oneOfFew(work);
    } finally {
      begun -= 1;
    }
  };
  return {
    expectRoom,
    hash: (password) =>
      bounded(async () => {
        const salt = randomBytes(SALT_LENGTH_BYTES);
        const tag = await argon2id({
          message: messageOf(password),
          salt,
          memoryKiB: MEMORY_KIB,
          passes: PASSES,
          tagLengthBytes: TAG_LENGTH_BYTES,
        });
        return `$argon2id$v=19$m=${MEMORY_KIB},t=${PASSES},p=1$${unpadded(salt)}$${unpadded(tag)}`;
      }),
    verify: (password, hash) =>
      bounded(async () => {
        const [, memory, passes, salt, tag] = PHC.exec(hash ?? NOBODYS_HASH) ?? [];
        if (salt === undefined || tag === undefined) throw new TypeError('A stored password hash is not argon2id');
        const expected = Buffer.from(tag, 'base64');
        const actual = await argon2id({
          message: messageOf(password),
          salt: Buffer.from(salt, 'base64'),
          memoryKiB: Number(memory),
          passes: Number(passes),
          tagLengthBytes: expected.length,
        });
        return timingSafeEqual(actual, expected) && hash !== null;
      }),
  };
}

/** Normalised, so that composed and decomposed letters give the same bytes. */
function messageOf(password: string): Buffer {
  return Buffer.from(password.normalize('NFKC'), 'utf8');
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '');
}
