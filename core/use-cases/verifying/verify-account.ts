/**
 * Verifies one account as a whole: the tree of its log against its leaves and its last checkpoint, the last entry, and
 * the vault records that are current.
 *
 * Invariants: what seems wrong in the vault is looked at again, after the events that were appended since. One part
 * that cannot be read keeps no other from being verified.
 */
import { accounts } from '../../account/evolve.ts';
import { grow, NO_TREE, rangeHash, subtreesOf } from '../../audit/tree.ts';
import type { Digest } from '../../kernel/digest.ts';
import { streamName } from '../../kernel/envelope.ts';
import type { AccountId } from '../../kernel/ids.ts';
import type { AccountLogReader } from '../../ports/account-log.ts';
import type { Pause } from '../../ports/clock.ts';
import type { EventStore } from '../../ports/event-store.ts';
import type { Vault } from '../../ports/vault.ts';
import { readForward } from '../../runtime/read-forward.ts';
import type { Checkpoints } from '../auditing/checkpoints.ts';
import { tellingChanges } from './changed.ts';
import type { Pace } from './pace.ts';
import { pacedStreams } from './paced-streams.ts';
import { reportChange } from './verify-trees.ts';
import { createVaultCheck, SECOND_LOOK_MS } from './verify-vault.ts';

export interface AccountContext {
  readonly events: Pick<EventStore, 'head' | 'readStream'>;
  readonly digest: Digest;
  readonly vault: Vault;
  readonly readModels: Pick<AccountLogReader, 'entryPlaces' | 'treeHashes'>;
  readonly checkpoints: Pick<Checkpoints, 'recordOf'>;
  readonly pause: Pause;
}

export interface AccountLog {
  readonly account: AccountId;
  readonly size: number;
}

export async function verifyAccount(
  context: AccountContext,
  log: AccountLog,
  pace: Pace,
  fault: (text: string) => void,
): Promise<void> {
  for (const verify of [verifyTree, verifyCheckpoint, verifyVault]) {
    await tellingChanges(fault, () => verify(context, log, pace, fault));
  }
}

const PAGE_ENTRIES = 1_000;
/** What a row of an entry takes, about. */
const PLACE_BYTES = 200;

async function verifyTree(
  { events, digest, readModels }: AccountContext,
  { account, size }: AccountLog,
  pace: Pace,
  fault: (text: string) => void,
): Promise<void> {
  let tree = NO_TREE;
  while (tree.size < size) {
    const { places } = await pace.run(async () => {
      const range = { from: tree.size, to: size, limit: PAGE_ENTRIES };
      const read = await readModels.entryPlaces(account, null, range);
      return { places: read, sizeBytes: read.length * PLACE_BYTES };
    });
    if (places.length === 0) return fault(`The log of account ${account} has ${size} entries, and lacks ${tree.size}`);
    for (const { leaf } of places) tree = grow(digest, tree, leaf, () => undefined);
    const last = places.at(-1);
    if (tree.size < size || last === undefined) continue;
    await reportChange({ events, digest }, account, last, fault);
  }
  if (size === 0) return;
  const root = rangeHash(digest, await readModels.treeHashes(account, subtreesOf({ begin: 0, end: size })));
  if (rangeHash(digest, tree.hashes) !== root) fault(`The tree of account ${account} is not that of its leaves`);
}

/** A checkpoint of more entries than the log has is counted by check-checkpoints.ts, until the loss is accepted. */
async function verifyCheckpoint(
  { events, checkpoints }: AccountContext,
  { account }: AccountLog,
  pace: Pace,
  fault: (text: string) => void,
): Promise<void> {
  const { head, last } = await pace.run(async () => {
    return { ...(await checkpoints.recordOf(account, await events.head())), sizeBytes: 0 };
  });
  if (last === null || last.continued || last.size > head.size) return;
  fault(`The log of account ${account} was signed with ${last.size} entries, and has another root at that size`);
}

/** Source addresses are looked at page by page of the log (verify-page.ts): an account may have many. */
async function verifyVault(
  { events, vault, pause }: AccountContext,
  { account }: AccountLog,
  pace: Pace,
  fault: (text: string) => void,
): Promise<void> {
  const check = createVaultCheck(vault, fault);
  const paced = pacedStreams(events, pace);
  let next = 0;
  const readOn = async (): Promise<void> => {
    for await (const event of readForward(paced, streamName(accounts.category, account), next)) {
      check.add({ ...event, sourceAddressRef: null });
      next = event.revision + 1;
    }
  };
  await readOn();
  await check.finish(async () => {
    await pause(SECOND_LOOK_MS, pace.signal);
    await readOn();
  });
}
