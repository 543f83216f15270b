/** Addresses of refs and paths that both hold slashes. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { REF_NAME_BYTES_MAX } from '../../../../core/kernel/limits.ts';
import {
  addressedRef,
  REF_ADDRESS_COMPONENTS_MAX,
  refOfAnyAddress,
  splitRefPath,
} from '../../../../core/use-cases/reading/ref-path.ts';
import { branchText, findRef, idNamed, tagText } from '../../../../core/use-cases/reading/resolve-ref.ts';
import { startReading } from '../../../support/reading.ts';
import { addressMeaning, meaningOf } from '../../../support/ref-meaning.ts';
import { createDice } from '../../../support/seeded.ts';

const segments = (path: string): readonly Uint8Array[] => path.split('/').map((name) => Buffer.from(name));

async function repositoryWith(refs: readonly string[]) {
  const reading = await startReading();
  const commit = reading.objects.commit({ tree: reading.objects.tree({}), seconds: 1 });
  const updates = Object.fromEntries(refs.map((ref) => [ref, commit]));
  return { commit, repository: await reading.push(await reading.repository('r', 'main'), updates) };
}

describe('A ref and a path in one address', () => {
  test('are told apart by the longest ref that exists', async () => {
    const { repository, commit } = await repositoryWith([
      'refs/heads/main',
      'refs/heads/feature/one',
      'refs/tags/main/src',
      'refs/heads/HEAD/docs',
      'refs/tags/main',
    ]);
    for (const [path, ref, rest] of [
      ['main', 'main', ''],
      ['main/docs/a', 'main', 'docs/a'],
      ['main/src/a', 'main/src', 'a'],
      ['refs/heads/main/src/a', 'refs/heads/main', 'src/a'],
      ['refs/tags/main/x', 'refs/tags/main', 'x'],
      ['feature/one', 'feature/one', ''],
      ['feature/one/two', 'feature/one', 'two'],
      ['HEAD', 'HEAD', ''],
      ['HEAD/docs', 'HEAD', 'docs'],
      [`${commit.toUpperCase()}/x`, commit.toUpperCase(), 'x'],
      [`${commit}/main/src`, commit, 'main/src'],
      [`${commit.slice(0, 39)}/x`, commit.slice(0, 39), 'x'],
    ] as const) {
      const split = splitRefPath(repository, segments(path));
      assert.equal(split?.ref, ref, path);
      assert.equal(split?.names.map((name) => Buffer.from(name).toString()).join('/'), rest, path);
    }
    for (const path of [
      'feature',
      'feature/two',
      'nothing',
      'head',
      'refs',
      'refs/heads',
      'refs/main',
      commit.slice(0, 6),
    ]) {
      assert.equal(splitRefPath(repository, segments(path)), null, path);
    }
    assert.equal(splitRefPath(repository, [Buffer.from([0xff])]), null, 'no ref is anything but UTF-8');
    const encoded = (...names: readonly string[]) =>
      splitRefPath(
        repository,
        names.map((name) => Buffer.from(name)),
      );
    assert.equal(encoded('feature/one', 'two')?.ref, 'feature/one', 'a slash that was encoded');
    assert.equal(encoded('refs/tags/main', 'x')?.ref, 'refs/tags/main');
    assert.equal(encoded('refs', 'tags/main')?.ref, 'refs/tags/main');
    for (const name of ['HEAD/docs', `${commit}/docs`]) assert.equal(encoded(name, 'x'), null, name);
  });

  test('lead back to the same ref, whatever other refs there are', async () => {
    const { repository } = await repositoryWith(['refs/heads/main', 'refs/tags/main/src', 'refs/tags/main']);
    assert.equal(addressedRef(repository, 'main', segments('docs')), 'main');
    assert.equal(addressedRef(repository, 'main', segments('src/a')), 'refs/heads/main');
    assert.equal(addressedRef(repository, 'main', []), 'main');
    assert.equal(addressedRef(repository, 'refs/tags/main', segments('x')), 'refs/tags/main');
  });

  test('lead back to the same ref in random sets of refs, as the model has it', async () => {
    const dice = createDice(17);
    const id = 'ab'.repeat(20);
    const words = (): string =>
      Array.from({ length: 1 + dice.below(3) }, () =>
        dice.pick(['HEAD', 'refs', 'heads', 'main', 'docs', id, id.toUpperCase(), 'cd'.repeat(32), 'x']),
      ).join('/');
    const reading = await startReading();
    const commit = reading.objects.commit({ tree: reading.objects.tree({}), seconds: 1 });
    for (let round = 0; round < 150; round += 1) {
      const drawn = Array.from({ length: 12 }, () => `refs/${dice.pick(['heads', 'tags', 'notes'])}/${words()}`);
      // No ref is a folder of another.
      const names = drawn.filter((name, at) =>
        drawn.every((other, to) => to === at || !`${name}/`.startsWith(`${other}/`)),
      );
      const refs = Object.fromEntries(names.map((name) => [name, name]));
      const defaultBranch = dice.pick([
        'main',
        'HEAD/x',
        ...names.flatMap((name) => /^refs\/heads\/(.*)/.exec(name)?.[1] ?? []),
      ]);
      const made = await reading.repository(`r${round}`);
      const pushed = await reading.push(made, Object.fromEntries(names.map((name) => [name, commit])));
      const repository = { ...pushed, defaultBranch };
      for (let count = 0; count < 25; count += 1) {
        const address = dice.chance(0.4) ? `${dice.pick(names)}/docs` : words();
        const about = `${address} in ${JSON.stringify({ names, defaultBranch })}`;
        const [split, meant] = [
          splitRefPath(repository, segments(address)),
          addressMeaning({ refs, defaultBranch }, address),
        ];
        assert.equal(split === null, meant === null, about);
        if (split === null || meant === null) continue;
        assert.equal(split.names.map((name) => Buffer.from(name).toString()).join('/'), meant.path, about);
        const found = findRef(repository, split.ref)?.fullName ?? idNamed(split.ref);
        assert.equal(found, meant.id, about);
        assert.equal(
          findRef(repository, split.ref)?.fullName ?? idNamed(split.ref),
          meaningOf({ refs, defaultBranch }, split.ref),
        );
        const path = segments(words());
        for (const text of [split.ref, dice.pick(names), words()]) {
          const named = findRef(repository, text)?.fullName;
          if (named === undefined) continue;
          const link = addressedRef(repository, text, path);
          const back = splitRefPath(repository, [...segments(link), ...path]);
          assert.equal(
            back === null ? null : findRef(repository, back.ref)?.fullName,
            named,
            `${text} as ${link}: ${about}`,
          );
          const anywhere = refOfAnyAddress(repository, text);
          assert.equal(
            findRef(repository, splitRefPath(repository, [...segments(anywhere), ...path])?.ref ?? '')?.fullName,
            named,
          );
          assert.deepEqual(back?.names, path, `${text} as ${link}: ${about}`);
        }
      }
      for (const name of names) {
        const branch = /^refs\/heads\/(.*)/.exec(name)?.[1];
        if (branch !== undefined) assert.equal(findRef(repository, branchText(repository, branch))?.fullName, name);
        const tag = /^refs\/tags\/(.*)/.exec(name)?.[1];
        if (tag !== undefined) assert.equal(findRef(repository, tagText(tag))?.fullName, name);
      }
    }
  });

  test('are found up to a bounded number of components of a ref, and a hostile address costs little', async () => {
    const deep = (components: number): string => Array.from({ length: components }, () => 'c').join('/');
    const component = 'd'.repeat(250);
    const long = Array.from({ length: 17 }, () => component)
      .join('/')
      .slice(0, REF_NAME_BYTES_MAX - 'refs/heads/'.length);
    const [most, tooMany] = [REF_ADDRESS_COMPONENTS_MAX, REF_ADDRESS_COMPONENTS_MAX + 1];
    const { repository } = await repositoryWith([`refs/heads/${long}`, `refs/heads/${deep(most)}`]);
    assert.equal(splitRefPath(repository, segments(`${long}/x`))?.ref, long);
    assert.equal(splitRefPath(repository, segments(`${deep(most)}/x`))?.ref, deep(most));
    const inFull = `refs/heads/${deep(most)}`;
    assert.equal(splitRefPath(repository, segments(`${inFull}/x`))?.ref, inFull);
    const { repository: other } = await repositoryWith([`refs/heads/${deep(tooMany)}`]);
    assert.equal(splitRefPath(other, segments(`${deep(tooMany)}/x`)), null);
    assert.equal(splitRefPath(other, segments(`refs/heads/${deep(tooMany)}/x`)), null);
    const hostile = segments('a/'.repeat(16_000));
    const since = performance.now();
    for (let times = 0; times < 100; times += 1) assert.equal(splitRefPath(repository, hostile), null);
    assert.ok(performance.now() - since < 1_000, `${performance.now() - since} ms`);
  });
});
