/** An account with a long log: pushes to a hundred repositories in turn, ten seconds apart. */
import { streamName } from '../../core/kernel/envelope.ts';
import { type AccountId, plusMs, type Timestamp } from '../../core/kernel/ids.ts';
import { type Appender, layer } from './read-models.ts';
import { branch, moved, oid } from './repository-history.ts';

const REPOSITORIES = 100;
const PUSHES_OF_APPEND = 50;
const ENTRY_MS = 10_000;

export interface LongAccount {
  readonly account: AccountId;
  /** Returns the moment at which this part of the log was there, for a part from 0 to 1. */
  readonly momentAt: (part: number) => Timestamp;
}

export async function appendLongAccount(append: Appender, entries: number): Promise<LongAccount> {
  const account = await append.account('ada');
  const ids = [];
  for (let n = 0; n < REPOSITORIES; n += 1) ids.push(await append.repository(account, `project-${n}`));
  const start = append.now;
  for (let at = 1 + REPOSITORIES, turn = 0; at < entries; at += PUSHES_OF_APPEND, turn += 1) {
    append.now = plusMs(start, at * ENTRY_MS);
    const id = ids[turn % REPOSITORIES];
    const pushes = Array.from({ length: PUSHES_OF_APPEND }, (_, n) => ({
      type: 'RefsUpdated',
      data: {
        ...{ push_id: `${turn}-${n}`, parts: null, push_options: [], refused: 0, restored: null },
        request_digest: null,
        updates: [moved(branch(`b${(turn + n) % 40}`), null, oid(`${(turn % 9) + 1}${n}`))],
        ...{ layer: layer(10), received_bytes: 100 },
      },
    }));
    await append.together(streamName('repository', String(id)), account, pushes);
  }
  return { account, momentAt: (part) => plusMs(start, Math.floor(part * entries) * ENTRY_MS) };
}
