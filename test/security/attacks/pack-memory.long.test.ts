/**
 * The attack: six pushes of some 30 KB, each of a chain of commits with 150,000 parents, stored as deltas of one
 * another. git expands them to gigabytes of text, and keeps the parents: six processes took 1.7 GB, and both
 * processors for half a minute.
 */
import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { type Stage, setStage, underAttack } from '../../support/attack.ts';
import { suiteEnding } from '../../support/cleanup.ts';
import { NO_PROC } from '../../support/git-below.ts';
import { type WireReport, wirePush } from '../../support/git-wire.ts';
import { packOfLargeCommits } from '../../support/hostile-packs.ts';
import { skippedFor } from '../../support/skipped.ts';
import { createRepository } from '../../support/strata.ts';

const PUSHES = 6;
const MIB = 1024 * 1024;

describe('Packs that expand', skippedFor(NO_PROC), () => {
  const ending = suiteEnding();
  let stage: Stage;

  beforeAll(async () => {
    stage = await setStage(ending);
    for (let index = 0; index < PUSHES; index += 1) await createRepository(stage.strata, stage.attacker, `r${index}`);
  });

  test('take no more memory together than pushes may, and others are answered in between', async (context) => {
    const { strata, attacker } = stage;
    const { bytes, tip } = packOfLargeCommits({ commits: 120, parents: 150_000 });
    assert.ok(bytes.length < 40_000, `${bytes.length} bytes`);
    let reports: readonly WireReport[] = [];
    const attack = async () => {
      const pushes = Array.from({ length: PUSHES }, (_, index) =>
        wirePush({ strata, account: attacker, name: `r${index}` }, [{ ref: 'refs/heads/main', after: tip }], bytes),
      );
      reports = await Promise.all(pushes);
    };
    const bounds = { processesMax: 16, diskBytesMax: 32 * MIB, eventsMax: 100 };
    await underAttack(context, stage, `${PUSHES} packs of ${bytes.length} bytes that expand`, attack, bounds);
    for (const { unpack, remote } of reports) {
      assert.match(unpack ?? '', /memory than a push may|commit .* has more than|is larger than/, remote);
    }
  });
});
