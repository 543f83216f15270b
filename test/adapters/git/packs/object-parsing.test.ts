/** Commits and tags, parsed as git parses them. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import { parseCommit, parseCommitLinks, parseTag } from '../../../../adapters/git/packs/object-parsing.ts';
import { type ObjectId, objectId } from '../../../../core/kernel/ids.ts';
import { temporaryFolder, testRepository } from '../../../support/git.ts';

const EMPTY_TREE = objectId('4b825dc642cb6eb9a060e54bf8d69288fbee4904');

describe('parsing objects', () => {
  const folder = temporaryFolder('parsing');
  const repository = testRepository(join(folder.path, 'repository'));
  afterAll(() => folder.remove());

  const parsed = (id: ObjectId) => parseCommit(id, repository.git(['cat-file', 'commit', id]));

  test('reads a merge with everything that git shows of it', () => {
    const first = repository.commit({ a: '1' });
    const second = repository.commit({ a: '2' });
    const merge = repository.commit({ b: '1' }, { parents: [second, first], message: 'Merge\n\nBoth.\n' });
    const commit = parsed(merge);
    const format = '%T%n%P%n%an%n%ae%n%at%n%cn%n%ce%n%ct';
    const shown = repository.git(['show', '-s', `--format=${format}`, merge]).toString();
    const { tree, parents, author, committer } = commit ?? assert.fail('no commit');
    const people = [author, committer].map(({ name, email, seconds }) => `${name}\n${email}\n${seconds}`);
    assert.equal(`${tree}\n${parents.join(' ')}\n${people.join('\n')}\n`, shown);
    assert.equal(commit?.message, 'Merge\n\nBoth.\n');
    const raw = repository.git(['cat-file', 'commit', merge]);
    assert.deepEqual(parseCommitLinks(raw), { parents: [second, first], seconds: committer.seconds });
  });

  test('takes only the parents that git takes: the lines right after the tree', () => {
    const [first, second] = [repository.commit({ a: 'p1' }), repository.commit({ a: 'p2' })];
    const person = 'A <a@example.org> 1700000000 +0000';
    const lines = [`tree ${EMPTY_TREE}`, `parent ${first}`, `author ${person}`, `committer ${person}`];
    const late = repository.object('commit', `${[...lines, `parent ${second}`].join('\n')}\n\nx\n`);
    assert.equal(repository.line(['rev-list', '--parents', '-n1', late]), `${late} ${first}`);
    assert.deepEqual(parsed(late)?.parents, [first]);
  });

  test('reads odd identities, dates and zones as git does', () => {
    const identities = [
      'A U Thor <a@example.org> 1700000000 +0130',
      'A U Thor <a@example.org> 1700000000 -0700',
      ' <> 0 +0000',
      'Two <<b@example.org>> 1700000001 +0000',
      'Late <c@example.org> 18446744073709551616 +0000',
      'Broken <d@example.org> yesterday',
      'Far <e@example.org> 1700000000 +1400',
      'A > B <f@example.org> 1700000000 +0000',
    ];
    for (const identity of identities) {
      const bytes = `tree ${EMPTY_TREE}\nauthor ${identity}\ncommitter ${identity}\n\nx\n`;
      const id = repository.object('commit', bytes);
      const shown = repository.git(['show', '-s', '--format=%an%n%at', id]).toString();
      const author = parsed(id)?.author;
      const [name, seconds] = shown.split('\n');
      assert.equal(author?.name, name, identity);
      // git shows no date, or its largest one, for a date that it cannot represent.
      if (!/Late|Broken/.test(identity)) assert.equal(String(author?.seconds), seconds, identity);
      else assert.equal(author?.seconds, identity.startsWith('Late') ? Number.MAX_SAFE_INTEGER : 0, identity);
    }
    const zoned = (zone: string) =>
      parseCommit(EMPTY_TREE, Buffer.from(`tree ${EMPTY_TREE}\nauthor A <a@b> 5 ${zone}\n\n`))?.author.offsetMinutes;
    assert.deepEqual(['+0130', '-0700', '+0000', '-0000', ''].map(zoned), [90, -420, 0, 0, 0]);
  });

  test('decodes names and messages from the encoding that the commit names, else as UTF-8', () => {
    const latin = Buffer.from(
      `tree ${EMPTY_TREE}\nauthor J\xfcrgen <j@e> 1 +0000\ncommitter J <j@e> 1 +0000\nencoding ISO-8859-1\n\nGr\xfc\xdfe\n`,
      'latin1',
    );
    const commit = parsed(repository.object('commit', latin));
    assert.equal(commit?.author.name, 'Jürgen');
    assert.equal(commit?.message, 'Grüße\n');
    const unknown = Buffer.from(`tree ${EMPTY_TREE}\nauthor J\xfcrgen <j@e> 1 +0000\nencoding klingon\n\nx`, 'latin1');
    assert.equal(parseCommit(EMPTY_TREE, unknown)?.author.name, 'J\ufffdrgen');
  });

  test('leaves signatures out, and keeps a message that looks like headers', () => {
    const bytes = `tree ${EMPTY_TREE}\nauthor A <a@e> 1 +0000\ngpgsig -----BEGIN\n parent ${EMPTY_TREE}\n \n tree x\n\nparent ${EMPTY_TREE}\n`;
    const commit = parseCommit(EMPTY_TREE, Buffer.from(bytes));
    assert.deepEqual(commit?.parents, []);
    assert.equal(commit?.message, `parent ${EMPTY_TREE}\n`);
  });

  test('returns null for bytes that are no commit or tag, and never throws', () => {
    for (const text of ['', '\n', 'tree', 'tree \n', 'tree 123\n\n', `object ${EMPTY_TREE}\ntype plant\n`, '\0\xff']) {
      assert.equal(parseCommit(EMPTY_TREE, Buffer.from(text, 'latin1')), null);
      assert.equal(parseTag(Buffer.from(text, 'latin1')), null);
    }
  });

  test('reads what a tag points at', () => {
    repository.commit({ a: '3' });
    repository.git(['tag', '-a', '-m', 'x', 'v1', 'HEAD^{tree}']);
    const bytes = repository.git(['cat-file', 'tag', 'v1']);
    assert.deepEqual(parseTag(bytes), { id: repository.line(['rev-parse', 'HEAD^{tree}']), type: 'tree' });
  });
});
