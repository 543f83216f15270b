/**
 * Password hashes by argon2id: 19 MiB, two passes, one lane (OWASP's first choice).
 *
 * Invariants: at most two run at the same time, and one processor is left for everything else where there are several.
 * So a flood of sign-ins takes bounded memory and leaves threads of Node's pool (four by default) for files. A password
 * that was right counts little: an office whose people all sign in is no flood.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { networkOf, wideNetworkOf } from '../../core/kernel/network.ts';
import { type PasswordHasher, PasswordHasherError, type PasswordTurn } from '../../core/ports/password-hasher.ts';
import { type Argon2id, findArgon2id } from './argon2id.ts';
import { type Asking, createTurns } from './fair-turns.ts';

/**
 * Passwords that wait to be hashed or compared: those of strangers, and of people who are known (fair-turns.ts).
 * At this bound, and for who has waited this long, the service answers that it is busy.
 */
export const PASSWORDS_WAITING_MAX = 100;
export const PASSWORD_WAIT_MS = 15_000;
/** How long a compared password counts towards whose turn is next. Internal: it is a part of whose turn is next. */
const PASSWORD_TURNS_SPAN_MS = 15 * 60_000;
/**
 * The turns that a whole /24 of IPv4 or /48 of IPv6 has for one of a single network in it. Internal: it is a part of
 * whose turn is next.
 */
const WIDE_NETWORK_TURNS = 8;

const MEMORY_KIB = 19 * 1024;
const PASSES = 2;
const TAG_LENGTH_BYTES = 32;
const SALT_LENGTH_BYTES = 16;
/** What a right password, and any other, counts towards whose turn is next. */
const RIGHT = 0.1;
const ANY_OTHER = 1;
/** Callers whose passwords are counted. Internal: it is a part of whose turn is next. */
const COUNTED_MAX = 100_000;
/** Passwords that are hashed at the same time. Internal: further passwords wait. */
const CONCURRENT_MAX = Math.max(1, Math.min(2, availableParallelism() - 1));

/** PHC string: `$argon2id$v=19$m=…,t=…,p=1$<salt>$<tag>`, base64 without padding. */
const PHC = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=1\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;

/** A hash with today's parameters, of which no password is known: its tag was chosen, not computed. */
const NOBODYS_HASH = `$argon2id$v=19$m=${MEMORY_KIB},t=${PASSES},p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`;

export interface PasswordHasherOptions {
  readonly argon2id?: Argon2id;
  readonly concurrentMax?: number;
  readonly monotonicMs?: () => number;
}

export function createPasswordHasher({
  argon2id = findArgon2id(),
  concurrentMax = CONCURRENT_MAX,
  monotonicMs = () => performance.now(),
}: PasswordHasherOptions = {}): PasswordHasher {
  const turns = createTurns({
    slots: concurrentMax,
    waitingMax: PASSWORDS_WAITING_MAX,
    waitMs: PASSWORD_WAIT_MS,
    spanMs: PASSWORD_TURNS_SPAN_MS,
    keysMax: COUNTED_MAX,
    monotonicMs,
  });
  const inTurn = async <Result>(
    turn: PasswordTurn,
    worth: (result: Result) => number,
    work: () => Promise<Result>,
  ): Promise<Result> => {
    const release = await turns.take(askingOf(turn));
    if (release === null) throw new PasswordHasherError('password-hasher-busy', 'Too many passwords wait');
    let counted = ANY_OTHER;
    try {
      const result = await work();
      counted = worth(result);
      return result;
    } finally {
      release(counted);
    }
  };
  return {
    expectRoom(turn) {
      if (!turns.ask(askingOf(turn))) throw new PasswordHasherError('password-hasher-busy', 'Too many passwords wait');
    },
    hash: (password, turn) =>
      inTurn(
        turn,
        () => ANY_OTHER,
        async () => {
          const salt = randomBytes(SALT_LENGTH_BYTES);
          const parameters = { memoryKiB: MEMORY_KIB, passes: PASSES, tagLengthBytes: TAG_LENGTH_BYTES };
          const tag = await argon2id({ message: messageOf(password), salt, ...parameters });
          return `$argon2id$v=19$m=${MEMORY_KIB},t=${PASSES},p=1$${unpadded(salt)}$${unpadded(tag)}`;
        },
      ),
    verify: (password, hash, turn) =>
      inTurn(
        turn,
        (isRight) => (isRight ? RIGHT : ANY_OTHER),
        () => compare(argon2id, password, hash),
      ),
  };
}

function askingOf(turn: PasswordTurn): Asking {
  if (turn.kind === 'known') return { lane: 'known', counts: [{ key: turn.account, share: 1 }] };
  const { address } = turn;
  const counts = [
    { key: networkOf(address), share: 1 },
    { key: wideNetworkOf(address), share: WIDE_NETWORK_TURNS },
  ];
  return { lane: 'stranger', counts };
}

async function compare(argon2id: Argon2id, password: string, hash: string | null): Promise<boolean> {
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
}

/** Normalised, so that composed and decomposed letters give the same bytes. */
function messageOf(password: string): Buffer {
  return Buffer.from(password.normalize('NFKC'), 'utf8');
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '');
}
