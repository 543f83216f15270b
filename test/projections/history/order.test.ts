/** The default branch's order on random histories, against git rev-list. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { ZERO_OBJECT_ID } from '../../../core/kernel/ids.ts';
import { CLOCKS, importHistories, randomShapes, seededNumbers } from '../../core/git/history/random-histories.ts';
import { Pushed, serve } from '../../support/pushed-repository.ts';

describe('the order of commits', () => {
  test('equals that of git rev-list after each move of a branch on random histories', async (context) => {
    const service = await serve(context);
    const random = seededNumbers(7);
    for (const clock of CLOCKS) {
      const repository = await Pushed.create(service);
      const [commits = []] = importHistories(repository.bare, [randomShapes(60, clock, random)]);
      let at = 0;
      for (let move = 0; move < 12; move += 1) {
        // Mostly forwards, sometimes to any commit.
        at = random(4) > 0 ? Math.min(commits.length - 1, at + 1 + random(6)) : random(commits.length);
        const id = commits[at]?.id ?? ZERO_OBJECT_ID;
        await repository.push({
          'refs/heads/main': id,
          [`refs/heads/other-${random(3)}`]: commits[random(60)]?.id ?? id,
        });
        await service.reads.caughtUp(service.append.last);
        await repository.check();
      }
    }
    const verified = await service.runner.verify('history');
    assert.equal(verified[0]?.differences, 0);
  });
});
