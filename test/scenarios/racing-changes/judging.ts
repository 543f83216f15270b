/**
 * Compares what a race was told with what the log holds, which is read only after the race.
 *
 * Invariants: each event of the race is the change of one request that was acknowledged, or that nobody answered. So
 * none is of a refused request, and none is of the repeat of a key.
 */
import assert from 'node:assert/strict';
import type { RecordedEvent } from '../../../core/kernel/envelope.ts';
import type { Ending } from '../../support/cleanup.ts';
import { checkRegister } from '../../support/linearizability.ts';
import { readRegister } from '../../support/register.ts';
import { git, gitUrl, type Strata } from '../../support/strata.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { CLIENTS } from './clients.ts';
import { type Move, mayHaveBeenMade, type Race, repeat } from './race.ts';

/** Keys that are tried again on each node when the race is over. */
const REPEATED = 10;

/** What an event says of the race's branch. */
interface Change {
  readonly id: string;
  readonly move: Move;
  readonly data: {
    readonly door: string | null;
    readonly request_digest: string | null;
    readonly restored: { readonly event_id: string } | null;
    readonly updates: readonly Move[];
  };
}

export async function judge(
  ending: Ending,
  race: Race,
  nodes: readonly Strata[],
  eventsSince: () => Promise<readonly RecordedEvent[]>,
): Promise<void> {
  await repeatOnEach(race, nodes);
  await readOnEach(race, nodes);
  const changes = (await eventsSince())
    .filter(({ type }) => type === 'RefsUpdated')
    .map((event) => changeOf(race, event));
  let value = race.begun;
  for (const { id, move } of changes) {
    assert.equal(move.before, value, `the event ${id} is decided against another head than it replaced`);
    value = move.after;
  }
  const ids = new Set(changes.map(({ id }) => id));
  const lost = [...race.made.keys()].filter((event) => !ids.has(event));
  assert.deepEqual(lost, [], 'changes that were acknowledged and are not in the log');
  const others = changes.filter(({ id }) => !race.made.has(id));
  const written = others.filter((change) => !isPush(race, change) && !isRestoration(race, change));
  assert.deepEqual([...race.pushed], [], 'pushes that were acknowledged and are not in the log');
  await judgeCommits(ending, race, nodes, written);
  judgeHistory(race);
}

function changeOf(race: Race, event: RecordedEvent): Change {
  const data = event.data as unknown as Change['data'];
  const move = race.made.get(event.id) ?? data.updates[0];
  assert.ok(move !== undefined, `nobody was told of the wide change ${event.id}`);
  return { id: event.id, move, data };
}

/** Takes the push that made the event from those that may have. */
function isPush({ pushed, unanswered }: Race, { id, move, data }: Change): boolean {
  if (data.door !== 'git') return false;
  if (pushed.delete(move.after)) return true;
  const answered = unanswered.pushes.get(move.after);
  assert.ok(answered !== undefined, `the event ${id} is of a push that was refused, or of one that has another event`);
  unanswered.pushes.delete(move.after);
  answered(mayHaveBeenMade(move));
  return true;
}

function isRestoration({ unanswered: { restorations } }: Race, { id, move, data }: Change): boolean {
  const { restored } = data;
  if (restored === null) return false;
  const at = restorations.findIndex(({ target }) => target === restored.event_id);
  const [found] = at < 0 ? [] : restorations.splice(at, 1);
  assert.ok(
    found !== undefined,
    `the event ${id} is of a restoration that was refused, or of one that has another event`,
  );
  found.answered(mayHaveBeenMade(move));
  return true;
}

/** What is left must be of commits without keys that nobody answered; their messages tell of which. */
async function judgeCommits(
  ending: Ending,
  race: Race,
  nodes: readonly Strata[],
  changes: readonly Change[],
): Promise<void> {
  const { commits } = race.unanswered;
  for (const { id, data } of changes) {
    assert.deepEqual(
      [data.door, data.request_digest],
      ['api', null],
      `the event ${id} is of a key, and nobody was told of it`,
    );
  }
  const messages = await messagesOf(ending, race, nodes, changes);
  for (const [index, { id, move }] of changes.entries()) {
    const message = messages[index] ?? '';
    const answered = commits.get(message);
    assert.ok(
      answered !== undefined,
      `the event ${id}, "${message}", is of a refused commit, or of one that has another event`,
    );
    commits.delete(message);
    answered(mayHaveBeenMade(move));
  }
}

/** Clones what there is, which git checks, and returns the commits' messages, also of those that no ref reaches. */
async function messagesOf(
  ending: Ending,
  { account, name }: Race,
  [node]: readonly Strata[],
  changes: readonly Change[],
): Promise<readonly string[]> {
  assert.ok(node !== undefined);
  const url = gitUrl(node, account, name);
  const folder = await tempDir(ending);
  await git(folder, ['clone', '--quiet', '--mirror', url, '.']);
  await git(folder, ['fsck', '--full', '--strict']);
  const messages: string[] = [];
  for (const { move } of changes) {
    await git(folder, ['fetch', '--quiet', url, move.after]);
    messages.push((await git(folder, ['log', '-1', '--format=%s', move.after])).trim());
  }
  return messages;
}

async function repeatOnEach(race: Race, nodes: readonly Strata[]): Promise<void> {
  for (const keyed of race.keyed.slice(-REPEATED)) {
    for (const node of nodes) await repeat(race, () => node, keyed);
  }
}

async function readOnEach({ account, name, recorder }: Race, nodes: readonly Strata[]): Promise<void> {
  for (const strata of nodes) {
    for (const over of ['git', 'rest'] as const) {
      const answered = recorder.call(CLIENTS.length);
      const answer = await readRegister({ strata, account, name }, over);
      assert.ok(answer !== null, 'a node that nobody kills does not answer');
      answered(answer);
    }
  }
}

function judgeHistory({ recorder: { history }, begun }: Race): void {
  const verdict = checkRegister(history, begun);
  if (verdict.linearizable) return;
  const [order, stuckAt] = [verdict.order.slice(-10), verdict.stuckAt].map((part) => JSON.stringify(part, null, 1));
  assert.fail(`after ${order} none of these can follow: ${stuckAt}`);
}
