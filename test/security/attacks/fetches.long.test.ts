/**
 * The attack: a fetch names as many objects as its body holds. 600,000 haves, 1.65 MB of gzip, took 1.6 s of the event
 * loop, and 26 such fetches at the same time 31 s, in which nobody was answered.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, test } from 'vitest';
import { FETCH_HAVES_MAX } from '../../../core/git/wire/fetch-request.ts';
import { type Stage, setStage, underAttack } from '../../support/attack.ts';
import { suiteEnding } from '../../support/cleanup.ts';
import { noteFigure } from '../../support/figures.ts';
import { NO_PROC } from '../../support/git-below.ts';
import { basicAuthorization } from '../../support/git-wire.ts';
import { skippedFor } from '../../support/skipped.ts';
import { createRepository, git, newWorkTree } from '../../support/strata.ts';
import { tempDir } from '../../support/temp-dir.ts';

const AT_ONCE = 26;
const ROUNDS = 2;
const WIDE_REFS = 10_000;

describe('Fetches that name very many objects', skippedFor(NO_PROC), () => {
  const ending = suiteEnding();
  let stage: Stage;
  let url: string;
  let tip: string;

  beforeAll(async () => {
    stage = await setStage(ending);
    const work = await newWorkTree(ending);
    url = await createRepository(stage.strata, stage.attacker, 'wide');
    await git(work, ['push', '--quiet', url, 'main']);
    tip = (await git(work, ['rev-parse', 'main'])).trim();
  });

  const packet = (text: string): string => (text.length + 4).toString(16).padStart(4, '0') + text;
  const bodyOf = (haves: number): Buffer => {
    const ids = Array.from({ length: haves }, (_, index) => packet(`have ${index.toString(16).padStart(40, '0')}`));
    const head = [packet('command=fetch'), '0001', packet('no-progress'), packet(`want ${tip}`)];
    return gzipSync([...head, ...ids, '0000'].join(''));
  };
  /** The answer; null when the account holds too much in its open requests already. */
  const fetchWith = async (body: Buffer): Promise<string | null> => {
    const answer = await fetch(`${stage.strata.url}/r/mallory/wide.git/git-upload-pack`, {
      method: 'POST',
      headers: {
        authorization: basicAuthorization(stage.attacker),
        'content-type': 'application/x-git-upload-pack-request',
        'content-encoding': 'gzip',
        'git-protocol': 'version=2',
      },
      body: new Uint8Array(body),
    });
    if (answer.status === 429) {
      await answer.arrayBuffer();
      return null;
    }
    assert.equal(answer.status, 200);
    return Buffer.from(await answer.arrayBuffer()).toString('latin1');
  };

  test('are refused by name beyond what git sends, and below it leave the event loop to others', async (context) => {
    const most = bodyOf(FETCH_HAVES_MAX);
    const beyond = bodyOf(600_000);
    let seen = 0;
    assert.match((await fetchWith(most)) ?? '', /acknowledgments/);
    assert.match((await fetchWith(beyond)) ?? '', /ERR more than 131072 haves in one request/);
    await underAttack(
      context,
      stage,
      'maximal fetches',
      async () => {
        for (let round = 0; round < ROUNDS; round += 1) {
          const answers = await Promise.all(
            Array.from({ length: AT_ONCE }, (_, index) => fetchWith(index % 2 === 0 ? most : beyond)),
          );
          for (const [index, answer] of answers.entries()) {
            if (answer === null) continue;
            seen += 1;
            assert.match(answer, index % 2 === 0 ? /acknowledgments/ : /ERR more than 131072 haves in one request/);
          }
        }
      },
      { diskBytesMax: 64 * 1024 * 1024, processesMax: 64 },
    );
    noteFigure(context, `${seen} of ${ROUNDS * AT_ONCE} maximal fetches were read, the others got 429`);
  });

  test('are answered when an honest client clones a repository of ten thousand branches', async () => {
    const wide = await createRepository(stage.strata, stage.other, 'wide');
    const work = await newWorkTree(ending);
    const commits = Array.from({ length: WIDE_REFS }, (_, index) =>
      [
        `commit refs/heads/b${index}`,
        'committer A <a@example.org> 1700000000 +0000',
        `data ${String(index).length}`,
        `${index}`,
        '',
      ].join('\n'),
    );
    execFileSync('git', ['fast-import', '--quiet'], { cwd: work, input: `${commits.join('\n')}\ndone\n` });
    await git(work, ['push', '--quiet', wide, 'refs/heads/b*:refs/heads/b*']);
    const clone = path.join(await tempDir(ending), 'clone');
    await git(work, ['clone', '--quiet', '--no-checkout', wide, clone]);
    const branches = await git(clone, ['for-each-ref', '--format=%(refname)', 'refs/remotes/origin']);
    assert.ok(branches.trim().split('\n').length >= WIDE_REFS);
  });
});
