/** Refs whose names are folders of other refs: compared with the plain definition, and in bounded work. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { type RefChanges, refCollisions as steps } from '../../../core/git/ref-collisions.ts';
import { byRefOrder, type RefName, refName } from '../../../core/git/ref-name.ts';
import { finish } from '../../../core/kernel/turns.ts';

const refCollisions = (changes: RefChanges) => finish(steps(changes));

function refs(...names: readonly string[]): RefName[] {
  return names.map((name) => refName(`refs/heads/${name}`)).sort(byRefOrder);
}

/** Implements the definition itself, in quadratic time. */
function collidingByDefinition(existing: RefName[], creates: RefName[], deletes: RefName[]): RefName[] {
  const after = new Set([...existing, ...creates]);
  for (const ref of deletes) after.delete(ref);
  const collides = (a: string, b: string) => a.startsWith(`${b}/`) || b.startsWith(`${a}/`);
  return creates.filter((ref) => [...after].some((other) => collides(ref, other))).sort(byRefOrder);
}

describe('Ref collisions', () => {
  test('include a ref created inside another, and one whose name is the folder of others', () => {
    const collisions = refCollisions({ existing: refs('a', 'b/c'), creates: refs('a/x', 'b', 'd'), deletes: [] });
    assert.deepEqual(collisions, [
      { ref: 'refs/heads/a/x', with: 'refs/heads/a' },
      { ref: 'refs/heads/b', with: 'refs/heads/b/c' },
    ]);
  });

  test('do not include a ref that replaces refs deleted by the same push', () => {
    assert.deepEqual(refCollisions({ existing: refs('a'), creates: refs('a/b'), deletes: refs('a') }), []);
    const existing = refs('a/b', 'a/c');
    assert.deepEqual(refCollisions({ existing, creates: refs('a'), deletes: refs('a/b', 'a/c') }), []);
    const collisions = refCollisions({ existing, creates: refs('a'), deletes: refs('a/b') });
    assert.deepEqual(collisions, [{ ref: 'refs/heads/a', with: 'refs/heads/a/c' }]);
  });

  test('include both of two created refs that collide', () => {
    const collisions = refCollisions({ existing: [], creates: refs('a', 'a/b', 'c'), deletes: [] });
    assert.deepEqual(
      collisions.map(({ ref }) => ref),
      ['refs/heads/a', 'refs/heads/a/b'],
    );
  });

  test('are found even if other names are between the two in byte order', () => {
    const existing = refs('a', 'a!', 'a-b', 'a.b', 'a0');
    assert.deepEqual(
      refCollisions({ existing, creates: refs('a/b'), deletes: [] }).map((collision) => collision.with),
      ['refs/heads/a'],
    );
  });

  test('are those of the definition, for random trees of names', () => {
    const component = fc.constantFrom('a', 'b', 'a-', 'a!', 'é', '\uffee', '\u{1f600}');
    const name = fc.array(component, { minLength: 1, maxLength: 4 }).map((parts) => `refs/heads/${parts.join('/')}`);
    const set = fc.uniqueArray(name, { maxLength: 12 });
    fc.assert(
      fc.property(set, set, fc.array(fc.boolean(), { minLength: 12, maxLength: 12 }), (before, wanted, kept) => {
        const existing: RefName[] = [];
        for (const ref of before.map(refName).sort(byRefOrder)) {
          if (collidingByDefinition(existing, [ref], []).length === 0) existing.push(ref);
        }
        const creates = wanted.map(refName).filter((ref) => !existing.includes(ref));
        const deletes = existing.filter((_, index) => kept[index] === false);
        const found = refCollisions({ existing, creates, deletes });
        assert.deepEqual(
          found.map(({ ref }) => ref),
          collidingByDefinition(existing, creates, deletes),
        );
        const after = new Set([...existing.filter((ref) => !deletes.includes(ref)), ...creates]);
        for (const { ref, with: other } of found) {
          assert.ok(after.has(other));
          assert.ok(ref.startsWith(`${other}/`) || other.startsWith(`${ref}/`));
        }
      }),
      { numRuns: 2_000 },
    );
  });

  test('attack: for names nested 2,000 folders deep among 50,000 refs are found without quadratic work', () => {
    let comparisons = 0;
    const existing = Array.from({ length: 50_000 }, (_, index) => refName(`refs/heads/b${index}`)).sort(byRefOrder);
    const counted = new Proxy(existing, {
      get(target, key, receiver) {
        if (typeof key === 'string') comparisons++;
        return Reflect.get(target, key, receiver) as unknown;
      },
    });
    const creates = Array.from({ length: 200 }, (_, index) => refName(`refs/heads/${'a/'.repeat(2_000)}${index}`));
    assert.deepEqual(refCollisions({ existing: counted, creates, deletes: [] }), []);
    // Three searches of 16 steps for each of the first three components, and none below them.
    assert.ok(comparisons < 200 * 4 * 3 * 20, `${comparisons} lookups`);
  });
});
