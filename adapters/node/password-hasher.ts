/**
 * Password hashes by node:crypto's argon2id: 19 MiB, two passes, one lane (OWASP's first choice).
 *
 * Must stay true: at most `CONCURRENT_MAX` run at once, so that a flood of sign-ins takes bounded memory and leaves
 * threads of the pool (four, unless told otherwise) for files.
 */
import { argon2, randomBytes, timingSafeEqual } from 'node:crypto';
import type { PasswordHasher } from '../../core/ports/password-hasher.ts';
import { createTurns } from '../../core/kernel/concurrency-limit.ts';

const MEMORY_KIB = 19 * 1024;
const PASSES = 2;
const TAG_LENGTH_BYTES = 32;
const SALT_LENGTH_BYTES = 16;
const CONCURRENT_MAX = 2;

/** PHC string: `$argon2id$v=19$m=…,t=…,p=1$<salt>$<tag>`, base64 without padding. */
const PHC = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=1\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;

export function createPasswordHasher(): PasswordHasher {
  const bounded = createTurns(CONCURRENT_MAX);
  return {
    hash: (password) =>
      bounded(async () => {
        const salt = randomBytes(SALT_LENGTH_BYTES);
        const tag = await derive(password, salt, MEMORY_KIB, PASSES, TAG_LENGTH_BYTES);
        return `$argon2id$v=19$m=${MEMORY_KIB},t=${PASSES},p=1$${unpadded(salt)}$${unpadded(tag)}`;
      }),
    verify: (password, hash) =>
      bounded(async () => {
        const [, memory, passes, salt, tag] = PHC.exec(hash) ?? [];
        if (salt === undefined || tag === undefined) throw new TypeError('A stored password hash is not argon2id');
        const expected = Buffer.from(tag, 'base64');
        const actual = await derive(
          password,
          Buffer.from(salt, 'base64'),
          Number(memory),
          Number(passes),
          expected.length,
        );
        return timingSafeEqual(actual, expected);
      }),
  };
}

function derive(password: string, salt: Buffer, memory: number, passes: number, tagLength: number): Promise<Buffer> {
  const message = Buffer.from(password.normalize('NFKC'), 'utf8');
  return new Promise((resolve, reject) => {
    argon2('argon2id', { message, nonce: salt, parallelism: 1, tagLength, memory, passes }, (error, tag) => {
      if (error === null) resolve(tag);
      else reject(error);
    });
  });
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '');
}
