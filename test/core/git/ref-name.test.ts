/** Names of refs: git's rules compared with git itself, and Strata's further rules. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import {
  branchOfRef,
  byRefOrder,
  newNameRefusal,
  parseBranchName,
  parseDefaultBranch,
  parseRefName,
  refName,
} from '../../../core/git/ref-name.ts';
import { utf8Length } from '../../../core/git/utf8.ts';
import { git, temporaryFolder } from '../../support/git-process.ts';

function verdict(name: string): string {
  const parsed = parseRefName(name);
  return typeof parsed === 'string' ? 'accepted' : parsed.refused;
}

/** Parts of hostile names: they can break, or almost break, each rule of git-check-ref-format(1). */
const PIECES = ['a', 'b1', 'é', '😀', '\u{fffd}', '-', '.', '..', '/', '//', '@', '{', '@{', '.lock', '.lock/', 'lock'];
PIECES.push('~', '^', ':', '?', '*', '[', ']', '\\', ' ', '\t', '\u007f', '\u0080', '\u0001', 'HEAD', '.git', '!', '0');

describe('A ref name', () => {
  test('is malformed exactly when git check-ref-format refuses it', () => {
    const names = [
      '',
      '/',
      '@',
      'refs',
      'refs/',
      'refs/heads',
      'refs/heads/',
      'refs/heads/@',
      'refs/heads/a@{b',
      'HEAD',
    ];
    names.push('refs/heads/.a', 'refs/heads/a.', 'refs/heads/a.lock', 'refs/heads/a.lock/b', 'refs/heads/a..b');
    names.push(
      'refs/heads/a.lockb',
      'refs//heads/a',
      '/refs/heads/a',
      'refs/heads/a/',
      'refs/heads/a\nb',
      'refs/heads/a\\b',
    );
    for (const piece of PIECES) names.push(`refs/heads/${piece}`, `refs/heads/a${piece}`, `refs/heads/a${piece}b`);
    for (const name of names) {
      const run = spawnSync('git', ['check-ref-format', name]);
      assert.equal(verdict(name) === 'ref-name-malformed', run.status !== 0, JSON.stringify(name));
    }
  });

  test('is malformed exactly when receive-pack calls it funny, for thousands of hostile names', () => {
    const component = fc.array(fc.constantFrom(...PIECES), { minLength: 1, maxLength: 5 });
    const namespaces = fc.constantFrom('refs/heads/', 'refs/tags/', 'refs/notes/', 'refs/');
    const names = new Set(
      fc
        .sample(fc.tuple(namespaces, component), { numRuns: 4_000, seed: 7 })
        .map(([space, rest]) => space + rest.join('')),
    );
    // Deletions need no pack, but git allows them refs of one level such as refs/a: the test above has these.
    const sent = [...names].filter((name) => name.slice('refs/'.length).includes('/'));
    const funny = funnyToReceivePack(sent);
    assert.ok(sent.length > 2_000 && funny.size > 500 && funny.size < sent.length - 200);
    for (const name of sent) {
      assert.equal(verdict(name) === 'ref-name-malformed', funny.has(name), JSON.stringify(name));
    }
  });

  for (const [name, expected] of [
    ['refs/heads/main', 'accepted'],
    ['refs/tags/v1.0', 'accepted'],
    ['refs/notes/commits', 'accepted'],
    ['refs/heads/refs/heads/x', 'accepted'],
    ['refs/tags/HEAD', 'accepted'],
    ['refs/heads/a/HEAD', 'accepted'],
    ['refs/replace/1234', 'ref-replace'],
    ['refs/Replace/1234', 'ref-replace'],
    ['refs/replacement/1234', 'accepted'],
    ['refs/strata/x', 'ref-reserved'],
    ['refs/Strata/x', 'ref-reserved'],
    ['refs/stratagem/x', 'accepted'],
    ['refs/pull/1/head', 'accepted'],
    ['refs/remotes/origin/HEAD', 'accepted'],
    ['refs/headsx/a', 'accepted'],
    ['refs/heads', 'ref-outside-namespaces'],
    ['refs/stash', 'ref-outside-namespaces'],
    ['other/heads/main', 'ref-outside-namespaces'],
    ['refs/pull/-a', 'ref-component-starts-with-dash'],
    ['refs/heads/-a', 'ref-component-starts-with-dash'],
    ['refs/heads/a/--upload-pack=x', 'ref-component-starts-with-dash'],
    ['refs/heads/a-', 'accepted'],
    ['refs/heads/HEAD', 'accepted'],
    [`refs/heads/${'a'.repeat(40)}`, 'accepted'],
    [`refs/tags/${'a'.repeat(40)}`, 'accepted'],
    ['refs/heads/a\ud800', 'ref-name-malformed'],
    ['refs/heads/a\u0000b', 'ref-name-malformed'],
    ['refs/heads/a\nb', 'ref-name-malformed'],
  ] as const) {
    test(`${JSON.stringify(name)} is ${expected}`, () => assert.equal(verdict(name), expected));
  }

  test('may have 250 bytes in a component and 4,096 in all, and not one more', () => {
    assert.equal(verdict(`refs/heads/${'x'.repeat(250)}`), 'accepted');
    assert.equal(verdict(`refs/heads/${'x'.repeat(251)}`), 'ref-component-too-long');
    assert.equal(verdict(`refs/heads/${'é'.repeat(125)}`), 'accepted');
    assert.equal(verdict(`refs/heads/${'é'.repeat(125)}x`), 'ref-component-too-long');
    const whole = `refs/heads/${'x/'.repeat(2_042)}x`;
    assert.equal(whole.length, 4_096);
    assert.equal(verdict(whole), 'accepted');
    assert.equal(verdict(`${whole}x`), 'ref-name-too-long');
    assert.equal(verdict(`refs/heads/${'é/'.repeat(1_362)}`), 'ref-name-too-long');
  });

  test('differs from names of another case or Unicode form', () => {
    assert.notEqual(refName('refs/heads/\u00e9'), refName('refs/heads/e\u0301'));
    assert.notEqual(refName('refs/heads/A'), refName('refs/heads/a'));
  });

  test('of a branch has a short name', () => {
    const short = parseBranchName('feature/x');
    assert.ok(typeof short === 'string');
    assert.equal(branchOfRef(refName('refs/heads/feature/x')), 'feature/x');
    assert.equal(branchOfRef(refName('refs/tags/v1')), null);
    assert.equal(typeof parseBranchName('-x'), 'object');
    assert.equal(typeof parseBranchName(''), 'object');
    assert.throws(() => refName('refs/heads/a b'), /holds a space/);
  });
});

describe('The name of a ref that is to be created', () => {
  const [hex40, hex64] = ['0123456789abcdefABCD'.repeat(2), '0123456789abcdef'.repeat(4)];
  for (const folder of ['refs/heads/', 'refs/tags/']) {
    for (const first of ['HEAD', 'refs', hex40, hex40.toUpperCase(), hex64, hex64.toUpperCase()]) {
      test(`is refused for its first component in ${folder}: ${first}`, () => {
        for (const rest of ['', '/x', '/tags/v1', '/HEAD']) {
          const name = refName(`${folder}${first}${rest}`);
          assert.equal(newNameRefusal(name)?.refused, 'name-ambiguous', name);
          assert.ok(branchOfRef(name) === null || folder === 'refs/heads/', 'what is recorded stays readable');
        }
      });
    }
    for (const first of [
      'head',
      'Head',
      'HEADS',
      'HEAD.x',
      'Refs',
      'refs.x',
      'ref',
      hex40.slice(1),
      `${hex40}0`,
      `${hex40}.x`,
    ]) {
      test(`is accepted in ${folder}: ${first}`, () => {
        assert.equal(newNameRefusal(refName(`${folder}${first}`)), null);
        assert.equal(newNameRefusal(refName(`${folder}${first}/x`)), null);
      });
    }
    for (const later of ['HEAD', 'refs', hex40, hex64]) {
      test(`is accepted in ${folder} where only a later component is ${later}`, () =>
        assert.equal(newNameRefusal(refName(`${folder}x/${later}`)), null));
    }
  }

  test('may be HEAD in any other folder', () => {
    for (const name of ['refs/remotes/origin/HEAD', 'refs/HEAD/x', 'refs/notes/HEAD', `refs/pull/${hex40}`]) {
      assert.equal(newNameRefusal(refName(name)), null, name);
    }
  });
});

describe('The text that chooses a default branch', () => {
  for (const [text, branch] of [
    ['main', 'main'],
    ['refs/heads/main', 'main'],
    ['a/b', 'a/b'],
    ['refs/heads/a/refs', 'a/refs'],
    ['heads/main', 'heads/main'],
    ['refs/heads/refs/heads/main', null],
    ['refs/tags/v1', null],
    ['refs/', null],
    ['refs', null],
    ['refs/heads/', null],
    ['refs/Heads/main', null],
    ['HEAD', null],
    ['HEAD/x', null],
    ['refs/heads/HEAD', null],
    ['a'.repeat(40), null],
    [`${'A'.repeat(64)}/x`, null],
    ['', null],
    ['-x', null],
    ['no..branch', null],
  ] as const) {
    test(`${JSON.stringify(text)} is ${branch === null ? 'refused' : `the branch ${branch}`}`, () => {
      const parsed = parseDefaultBranch(text);
      assert.equal(typeof parsed === 'string' ? parsed : null, branch);
    });
  }
});

describe('The order of refs', () => {
  test('is the order of their UTF-8 bytes, even where the order of UTF-16 differs', () => {
    const names = ['refs/heads/\uffee', 'refs/heads/\u{1f600}'];
    assert.deepEqual(names.toSorted(byRefOrder), names);
    assert.deepEqual(names.toSorted(), names.toReversed());
    const text = fc.string({ unit: 'binary' });
    fc.assert(
      fc.property(text, text, (a, b) => {
        assert.equal(Math.sign(byRefOrder(a, b)), Buffer.compare(Buffer.from(a), Buffer.from(b)));
        assert.equal(utf8Length(a), Buffer.byteLength(a));
      }),
      { numRuns: 500 },
    );
  });

  test('counts a lone surrogate as the three bytes that an encoder writes for it', () => {
    for (const text of ['\ud800', 'a\udc00b', '\udc00\ud800', '\ud83d\ude00\ud83d']) {
      assert.equal(utf8Length(text), Buffer.byteLength(text));
    }
  });
});

/** Returns the names that git's receive-pack refuses as `funny refname`, in one process. */
function funnyToReceivePack(names: readonly string[]): ReadonlySet<string> {
  const folder = temporaryFolder('ref-names');
  try {
    git(['init', '--quiet', '--bare', folder.path]);
    const zero = '0'.repeat(40);
    const lines = names.map((name, index) => {
      const line = `${'1'.repeat(40)} ${zero} ${name}${index === 0 ? '\0report-status' : ''}`;
      return (Buffer.byteLength(line) + 4).toString(16).padStart(4, '0') + line;
    });
    const answer = git(['receive-pack', '--stateless-rpc', folder.path], { input: `${lines.join('')}0000` });
    const funny = new Set<string>();
    for (const match of answer.toString().matchAll(/ng (.*) funny refname\n/g)) funny.add(match[1] ?? '');
    return funny;
  } finally {
    folder.remove();
  }
}
