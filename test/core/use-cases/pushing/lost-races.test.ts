/** What a push stores of a ref that a lost race refuses, with the real git: a fetch could have it by its id. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'vitest';
import type { ObjectId } from '../../../../core/kernel/ids.ts';
import { servesAllObjects } from '../../../../core/repository/unreached.ts';
import { found, pushPack, stateOf } from '../../../support/deleted-branch.ts';
import { startGitReading } from '../../../support/git-reading.ts';

for (const [name, files] of [
  ['is checked in process', 1],
  ['git checks', 600],
] as const) {
  test(`A push whose pack ${name} stores nothing of a ref that a lost race refused`, async (context) => {
    const reading = await startGitReading();
    context.onTestFinished(() => reading.close());
    const { git } = reading;
    const main = git.commit({ readme: 'hello\n' });
    await reading.push({ 'refs/heads/main': main });
    const made = (branch: string) => {
      const contents = Array.from({ length: files }, (_, n) => [`${branch}-${n}`, randomBytes(50)] as const);
      return git.commit(Object.fromEntries(contents), { branch, parents: [main] });
    };
    const [fine, lost, rival] = [made('fine'), made('lost'), made('rival')];
    const file = (commit: ObjectId, branch: string) => git.line(['rev-parse', `${commit}:${branch}-0`]) as ObjectId;
    const commands = [
      { ref: 'refs/heads/fine', before: null, after: fine },
      { ref: 'refs/heads/main', before: main, after: lost },
    ];
    let races = 0;
    const race = async (): Promise<void> => {
      if (races === 0) await reading.push({ 'refs/heads/main': rival });
      races += 1;
    };
    const pack = git.pack([fine, lost, `^${main}`]);
    const outcome = await pushPack(reading, commands, pack, race, 'push-layer-stored');
    assert.deepEqual('results' in outcome ? outcome.results.map(({ code }) => code) : outcome, [null, 'ref-moved']);
    assert.equal(races, 2, 'the layer is stored again');
    const ids = [fine, file(fine, 'fine'), rival, lost, file(lost, 'lost')];
    assert.deepEqual(await found(reading, ids), [true, true, true, false, false]);
    assert.equal(servesAllObjects(await stateOf(reading)), true);
  });
}
