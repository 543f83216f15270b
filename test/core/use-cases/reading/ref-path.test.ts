/** Addresses of refs and paths that both hold slashes. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { REF_ADDRESS_COMPONENTS_MAX, REF_NAME_BYTES_MAX } from '../../../../core/kernel/limits.ts';
import { addressedRef, splitRefPath } from '../../../../core/use-cases/reading/ref-path.ts';
import { startReading } from '../../../support/reading.ts';

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
      [`${commit}/main/src`, commit, 'main/src'],
    ] as const) {
      const split = splitRefPath(repository, segments(path));
      assert.equal(split?.ref, ref, path);
      assert.equal(split?.names.map((name) => Buffer.from(name).toString()).join('/'), rest, path);
    }
    for (const path of ['feature', 'feature/two', 'nothing', 'HEAD', commit.slice(0, 39)]) {
      assert.equal(splitRefPath(repository, segments(path)), null, path);
    }
    assert.equal(splitRefPath(repository, [Buffer.from([0xff])]), null, 'no ref is anything but UTF-8');
  });

  test('lead back to the same ref, whatever other refs there are', async () => {
    const { repository } = await repositoryWith(['refs/heads/main', 'refs/tags/main/src', 'refs/tags/main']);
    assert.equal(addressedRef(repository, 'main', segments('docs')), 'main');
    assert.equal(addressedRef(repository, 'main', segments('src/a')), 'refs/heads/main');
    assert.equal(addressedRef(repository, 'main', []), 'main');
    assert.equal(addressedRef(repository, 'refs/tags/main', segments('x')), 'refs/tags/main');
  });

  test('are found up to so many components of a ref, and a hostile address costs little', async () => {
    const deep = (components: number): string => Array.from({ length: components }, () => 'c').join('/');
    const component = 'd'.repeat(250);
    const long = Array.from({ length: 17 }, () => component)
      .join('/')
      .slice(0, REF_NAME_BYTES_MAX - 'refs/heads/'.length);
    const [most, tooMany] = [REF_ADDRESS_COMPONENTS_MAX, REF_ADDRESS_COMPONENTS_MAX + 1];
    const { repository } = await repositoryWith([`refs/heads/${long}`, `refs/heads/${deep(most)}`]);
    assert.equal(splitRefPath(repository, segments(`${long}/x`))?.ref, long);
    assert.equal(splitRefPath(repository, segments(`${deep(most)}/x`))?.ref, deep(most));
    const { repository: other } = await repositoryWith([`refs/heads/${deep(tooMany)}`]);
    assert.equal(splitRefPath(other, segments(`${deep(tooMany)}/x`)), null);
    const hostile = segments('a/'.repeat(16_000));
    const since = performance.now();
    for (let times = 0; times < 100; times += 1) assert.equal(splitRefPath(repository, hostile), null);
    assert.ok(performance.now() - since < 1_000, `${performance.now() - since} ms`);
  });
});
