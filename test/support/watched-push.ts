/**
 * A server for tests of refused pushes, which checks that such a push leaves nothing behind.
 *
 * Invariants: `traces` alone defines what "nothing" covers, for every test.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { categoryOf } from '../../core/kernel/envelope.ts';
import type { Ending } from './cleanup.ts';
import { filesBelow } from './files-below.ts';
import { type WireReport, type WireTarget, wireFetch, wireRefs } from './git-wire.ts';
import { leftovers } from './leftovers.ts';
import { type Account, createAccount, createRepository, type Strata } from './strata.ts';
import { type SharedParts, sharedParts, startNode } from './strata-on-postgres.ts';

export interface WatchedServer {
  readonly strata: Strata;
  readonly shared: SharedParts;
  readonly ada: Account;
  readonly port: number;
  /** Makes a new repository of Ada's, as the target of hand-made requests. */
  newTarget(): Promise<WireTarget>;
  /**
   * Runs a push that must be refused and checks that it left nothing: refs, log, layers and quarantines are as before,
   * and none of the ids can be fetched.
   */
  leavesNothing<Result>(target: WireTarget, ids: readonly string[], push: () => Promise<Result>): Promise<Result>;
}

export async function startWatchedServer(
  ending: Ending,
  env: Readonly<Record<string, string>> = {},
): Promise<WatchedServer> {
  const shared = await sharedParts(ending);
  const strata = await startNode(ending, shared, env);
  const ada = await createAccount(strata, 'ada');
  let repositories = 0;
  return {
    strata,
    shared,
    ada,
    port: Number(new URL(strata.url).port),
    async newTarget() {
      const name = `repository-${++repositories}`;
      await createRepository(strata, ada, name);
      return { strata, account: ada, name };
    },
    async leavesNothing(target, ids, push) {
      const before = await traces(shared, strata, target);
      const result = await push();
      assert.deepEqual(await traces(shared, strata, target), before);
      for (const id of ids) await cannotBeFetched(target, id);
      return result;
    },
  };
}

async function traces(shared: SharedParts, strata: Strata, target: WireTarget) {
  const log = await shared.log.since();
  return {
    refs: [...(await wireRefs(target))],
    // Events of stream category `transfer` are left out: the server appends one for each minute, at a time of its own.
    events: log.filter(({ stream }) => categoryOf(stream) !== 'transfer').length,
    layers: (await filesBelow(path.join(shared.layersDir, 'repositories')))
      .filter((file) => file.endsWith('.tar'))
      .toSorted(),
    leftovers: await leftovers(strata),
  };
}

/** Checks that both protocol versions answer for an id that no ref reaches exactly as for one that does not exist. */
export async function cannotBeFetched(target: WireTarget, id: string): Promise<void> {
  for (const version of [0, 2] as const) {
    const fetched = await wireFetch(target, id, version);
    assert.ok('refused' in fetched, `${id} was served over v${version}`);
    assert.match(fetched.refused, new RegExp(`not our ref ${id}`));
  }
}

/** Checks that no ref moved and that the refusal matches, in whatever form it arrived. */
export function assertRefused(report: WireReport, reason: RegExp, what = ''): void {
  const said = `${report.status} unpack ${report.unpack} ${JSON.stringify([...report.refs])} ${report.remote}`;
  assert.ok(![...report.refs.values()].includes('ok'), `${what} was accepted: ${said}`);
  assert.match(said, reason, what);
}
