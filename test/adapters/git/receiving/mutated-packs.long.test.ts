/**
 * Many small packs, most with something wrong: those that are accepted in process, judged by git as the product starts
 * it. small-pack.test.ts has a few of them, and reads what was stored as well.
 *
 * `STRATA_MUTATED_PACKS=100000 STRATA_MUTATED_PACKS_SEED=1 npm run test:long -- mutated-packs` makes more of them.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterAll, test } from 'vitest';
import { createFilePages } from '../../../../adapters/git/packs/file-pages.ts';
import { loadObjectHash } from '../../../../adapters/git/packs/object-hash.ts';
import { openPack } from '../../../../adapters/git/packs/object-source.ts';
import { createObjectCache } from '../../../../adapters/git/packs/pack-file.ts';
import { createReadTurns } from '../../../../adapters/git/packs/read-turns.ts';
import { createNearbyObjects } from '../../../../adapters/git/receiving/nearby-objects.ts';
import { indexSmallPack } from '../../../../adapters/git/receiving/small-pack.ts';
import { noteFigure } from '../../../support/figures.ts';
import { runGit, temporaryFolder } from '../../../support/git.ts';
import { loggingGit } from '../../../support/logging-git.ts';
import { committedEntries, mutatedPack } from '../../../support/mutated-packs.ts';
import { testDatabase } from '../../../support/object-database.ts';
import { rawPack } from '../../../support/raw-pack.ts';

const PACKS = Number(process.env['STRATA_MUTATED_PACKS'] ?? 20_000);
const SEED = Number(process.env['STRATA_MUTATED_PACKS_SEED'] ?? 1_000_000);
/** Packs that one shell gives to git, one after the other: starting git from a small process takes less time. */
const BATCH = 500;

const folder = temporaryFolder('mutated-packs');
afterAll(() => folder.remove());

/** The arguments with which the product has git check a pack. */
async function checkingArguments(): Promise<readonly string[]> {
  const log = join(folder.path, 'git.log');
  const database = await testDatabase({ hash: null, gitPath: loggingGit(log) });
  await database.push(database.newObjects(), rawPack(committedEntries()));
  await database.close();
  const line = readFileSync(log, 'utf8')
    .split('\n')
    .find((started) => started.startsWith('index-pack --stdin '));
  return line?.split(' ') ?? assert.fail('The product started no git index-pack');
}

interface Judged {
  readonly seed: number;
  /**
   * The checksum of the pack as it was stored, hex; null where it was completed, which each side does in its own order.
   */
  readonly name: string | null;
}

/** Has git check packs `<seed>.pack` of a folder, each beside the committed objects alone. */
async function judge(path: string, packs: readonly Judged[], args: readonly string[]): Promise<void> {
  const script = `cd "$1" && shift && for pack in *.pack; do
    GIT_OBJECT_DIRECTORY="$PWD/\${pack%.pack}" git "$@" < "$pack" > "\${pack%.pack}.out" 2> "\${pack%.pack}.err" ||
      echo refused > "\${pack%.pack}.out"
  done`;
  const env = {
    PATH: process.env['PATH'],
    HOME: '/nonexistent',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_DIR: join(folder.path, 'bare.git'),
    GIT_ALTERNATE_OBJECT_DIRECTORIES: join(folder.path, 'committed'),
  };
  await new Promise<void>((resolve, reject) => {
    const shell = spawn('sh', ['-c', script, 'sh', path, ...args], { env, stdio: 'ignore' });
    shell.once('error', reject);
    shell.once('close', (status) => (status === 0 ? resolve() : reject(new Error(`sh exited ${status}`))));
  });
  for (const { seed, name } of packs) {
    const said = readFileSync(join(path, `${seed}.out`), 'latin1');
    const [, found] = /^pack\t([0-9a-f]{40})\n$/.exec(said) ?? [];
    const why = readFileSync(join(path, `${seed}.err`), 'utf8');
    assert.ok(found !== undefined, `seed ${seed} is accepted in process, and git says: ${said} ${why}`);
    if (name !== null) assert.equal(found, name, `seed ${seed}`);
  }
  rmSync(path, { recursive: true });
}

test('Small packs are never accepted in process where git refuses them', async (context) => {
  const hash = loadObjectHash((error) => assert.fail(String(error))) ?? assert.fail('es-git names no objects');
  const { signal } = new AbortController();
  const args = await checkingArguments();
  const known = join(folder.path, 'committed');
  mkdirSync(join(known, 'pack'), { recursive: true });
  runGit(['init', '-q', '--bare', join(folder.path, 'bare.git')]);
  const said = runGit(['index-pack', '--stdin'], {
    input: rawPack(committedEntries()),
    env: { GIT_DIR: join(folder.path, 'bare.git'), GIT_OBJECT_DIRECTORY: known },
  });
  const file = (extension: string) =>
    join(known, 'pack', `pack-${said.toString('latin1').trim().replace('pack\t', '')}.${extension}`);
  const pages = createFilePages({ memoryBytesMax: 2 ** 24 });
  const memory = { pages, cache: createObjectCache(2 ** 20), turns: createReadTurns(nextTurn) };
  const committed = await openPack(memory, 'committed', file('pack'), file('idx'));

  let [accepted, sound, acceptedSound] = [0, 0, 0];
  let judging: Promise<void> = Promise.resolve();
  for (let start = SEED; start < SEED + PACKS; start += BATCH) {
    const path = join(folder.path, `from-${start}`);
    mkdirSync(path);
    const packs: Judged[] = [];
    for (let seed = start; seed < Math.min(start + BATCH, SEED + PACKS); seed += 1) {
      const { bytes, isSound } = mutatedPack(seed);
      if (bytes.length < 12) continue;
      // git is to check those of more objects.
      const isSmall = bytes.readUInt32BE(8) <= 512;
      if (isSound && isSmall) sound += 1;
      const found = await indexSmallPack({ bytes, committed: createNearbyObjects([committed]), hash, signal });
      if (found === null) continue;
      accepted += 1;
      if (isSound && isSmall) acceptedSound += 1;
      mkdirSync(join(path, `${seed}`));
      writeFileSync(join(path, `${seed}.pack`), bytes);
      packs.push({ seed, name: found.pack === bytes.toString('hex', bytes.length - 20) ? found.pack : null });
    }
    await judging;
    judging = judge(path, packs, args);
    judging.catch(() => undefined);
  }
  await judging;
  assert.ok(!existsSync(join(folder.path, `from-${SEED}`)));
  noteFigure(context, `mutated packs: ${PACKS} from ${SEED}, ${accepted} accepted in process, none that git refuses`);
  assert.ok(accepted > PACKS / 5);
  assert.equal(acceptedSound, sound, 'packs with nothing wrong are accepted in process');
});
