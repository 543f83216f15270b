/** Guards of commits and tags that are written over the API: what decides them, and what their writers may name. */
import type { Mutation } from './mutation.ts';

const CHANGES = 'core/git/tree-changes.ts';
const DECIDE = 'core/use-cases/pushing/decide-commit.ts';
const WRITE = 'core/use-cases/pushing/write-commit.ts';
const TAG = 'core/use-cases/pushing/create-tag.ts';

const OF_TREE = 'test/core/git/tree-changes.test.ts';
const RACING = 'test/core/use-cases/pushing/write-commit.test.ts';
const OVER_REST = 'test/scenarios/write-commits.test.ts';

const UNFIT = { file: CHANGES, test: OF_TREE, red: 'that do not fit are refused, each with its number' };
const MEMORY = { file: DECIDE, test: RACING };
const PARTS = { file: 'apps/api/sent-parts.ts', test: 'test/apps/api/sent-parts.test.ts' };
const CONTENTS = {
  file: 'adapters/git/receiving/new-contents.ts',
  test: 'test/adapters/git/receiving/new-contents.test.ts',
};

const MUTATIONS: readonly Mutation[] = [
  {
    without: 'a second change of a path',
    text: "if (at.by !== null) throw new Unfit('path-changed-twice', by);",
    by: '',
    ...UNFIT,
  },
  {
    without: 'a change in a removed folder',
    text: '  refuseInRemoved(from, by);\n',
    by: '',
    ...UNFIT,
  },
  {
    without: 'a move into a removed folder',
    text: '  refuseInRemoved(to, toBy);\n',
    by: '',
    ...UNFIT,
  },
  {
    without: 'a move onto something',
    text: "if (to.found !== null) throw new Unfit('path-exists', toBy, to.found);",
    by: '',
    ...UNFIT,
  },
  {
    without: 'a folder at the path of a file',
    text: "if (isFolder(found) && from.children.size === 0) throw new Unfit('path-is-folder', by, found);",
    by: '',
    ...UNFIT,
  },
  {
    without: 'a file that another change puts below',
    text: "if (entries.length > 0 && node.by !== null) throw new Unfit('path-is-folder', node.by, found);",
    by: '',
    ...UNFIT,
  },
  {
    without: 'a file that stands above a path',
    text: 'if (made !== null && own !== null && placed === null && !isFolder(own)) {',
    by: 'if (own === undefined) {',
    ...UNFIT,
  },
  {
    without: 'submodules at a path',
    file: CHANGES,
    text: "if (found?.mode === '160000') throw new Unfit('path-is-submodule', by, found);",
    by: '',
    test: OF_TREE,
    red: 'leave submodules as they are',
  },
  {
    without: 'what is expected at a path',
    file: CHANGES,
    text: "if (change.expected !== 'any' && change.expected !== (found?.id ?? null)) throw",
    by: 'if (change.expected === undefined) throw',
    test: OF_TREE,
    red: 'are refused where something else is there than was expected',
  },
  {
    without: 'the head that is expected',
    file: DECIDE,
    text: 'if (!isAsExpected) {',
    by: "if (ref === '') {",
    test: OVER_REST,
    red: 'is refused where the head is another than its writer saw',
  },
  {
    without: 'a branch that its writer saw',
    file: DECIDE,
    text: "expected === 'any-head' ? before !== null : expected === before",
    by: "expected === 'any-head' || expected === before",
    test: RACING,
    red: 'and any head is refused where another deleted the branch in between',
  },
  {
    without: 'a start of a branch that is there',
    file: DECIDE,
    text: 'if (before !== null && start !== null) return',
    by: "if (start === '') return",
    test: OVER_REST,
    red: 'an existing one begins nowhere',
  },
  {
    without: 'what refs reach of blobs',
    file: DECIDE,
    text: 'return reader.reachable(blobs, [...currentTips(entity.state)], String(entity.revision));',
    by: 'return new Set(blobs);',
    test: OVER_REST,
    red: 'names no blob and no start that only a deleted branch reached',
  },
  {
    without: 'the wish for a commit that changes nothing',
    file: WRITE,
    text: 'commit.tree === parent.tree && !wanted.allowEmpty',
    by: 'commit.tree === parent.tree',
    test: OVER_REST,
    red: 'that changes nothing is not made, unless its writer wants it',
  },
  {
    without: 'a look at whether anything changes',
    file: WRITE,
    text: 'commit.tree === parent.tree && !wanted.allowEmpty',
    by: 'wanted.allowEmpty === null',
    test: OVER_REST,
    red: 'that changes nothing is not made, unless its writer wants it',
  },
  {
    without: 'changes',
    file: WRITE,
    text: 'changes.length === 0 && !allowEmpty',
    by: 'allowEmpty === null',
    test: OVER_REST,
    red: 'that changes nothing is not made, unless its writer wants it',
  },
  {
    without: 'what was at its paths at first',
    file: DECIDE,
    text: "change.expected === 'any' && first !== undefined ? first : change.expected",
    by: 'change.expected',
    test: RACING,
    red: 'changes nothing that another wrote to its paths in between',
  },
  {
    without: 'the first decision',
    file: WRITE,
    text: 'seen ??= decided.seen;',
    by: 'seen = null;',
    test: RACING,
    red: 'deletes and moves a folder only as it was',
  },
  {
    without: 'a word of what came to where it moves a file',
    file: DECIDE,
    text: "code: isLate ? 'blob-moved' : fault.code",
    by: 'code: fault.code',
    test: RACING,
    red: 'changes nothing that another wrote to its paths in between',
  },
  {
    without: 'another decision on a head that moved',
    file: WRITE,
    text: 'fault.head === null || !takesAnyHead ?',
    by: 'fault.head !== undefined ?',
    test: RACING,
    red: 'is applied to the head that another pushed in between',
  },
  {
    without: 'an end of its decisions',
    file: WRITE,
    text: 'decisions <= REDECISIONS_MAX',
    by: 'decisions <= REDECISIONS_MAX + 1',
    test: RACING,
    red: 'and not once more',
  },
  {
    without: 'a word of a tree that has no name',
    file: DECIDE,
    text: 'if (!(error instanceof ObjectRefused)) throw error;',
    by: 'throw error;',
    test: RACING,
    red: 'is refused where one of its objects has no name',
  },
  {
    without: 'a turn for large trees',
    text: 'if (bytes >= LARGE_TREES_BYTES_MIN) await turn.take();',
    by: '',
    ...MEMORY,
    red: 'holds the turn of its account until its pack is read',
  },
  {
    without: 'a turn for long paths',
    text: 'if (pathsBytes >= LARGE_PATHS_BYTES_MIN) await turn.take();',
    by: '',
    ...MEMORY,
    red: 'may have long paths instead',
  },
  {
    without: 'an end of its turn where it is refused',
    text: "if ('fault' in decided) turn.release();",
    by: '',
    ...MEMORY,
    red: 'gives the turn back where it is refused',
  },
  {
    without: 'an end of its turn where it fails',
    text: '    turn.release();\n    if (!(error',
    by: '    if (!(error',
    ...MEMORY,
    red: 'gives the turn back where it is refused',
  },
  {
    without: 'an end of its turn when its pack was read',
    text: 'createObjectsToPush(context.newObjects, turn.release)',
    by: 'createObjectsToPush(context.newObjects, () => undefined)',
    ...MEMORY,
    red: 'holds the turn of its account until its pack is read',
  },
  {
    without: 'a bound on the entries that it reads',
    file: DECIDE,
    text: 'entries > CHANGED_ENTRIES_READ_MAX ? null',
    by: 'entries < 0 ? null',
    test: 'test/apps/api/write-commit.test.ts',
    red: 'entries of trees, and no more',
  },
  {
    without: 'a bound on the bytes that it reads',
    file: DECIDE,
    text: 'if (bytes > CHANGED_TREES_READ_BYTES_MAX) return null;',
    by: '',
    test: 'test/apps/api/write-commit.test.ts',
    red: 'MiB of trees, and no more',
  },
  {
    without: 'a look at whether its writer may read the target of a tag',
    file: TAG,
    text: '|| (await unreadableOf(context, repository, [target])).has(target)',
    by: '',
    test: 'test/apps/api/create-tag.test.ts',
    red: 'leads to nothing that the caller could not fetch',
  },
  {
    without: 'an end of the contents that wait on the disk',
    text: '    await disk.contents?.remove();\n',
    by: '',
    ...PARTS,
    red: 'that its client cuts anywhere leaves nothing',
  },
  {
    without: 'a look at whether a change names a part',
    text: "    if (!named.has(name)) throw unfit(partFault(name, 'No change names this part'));\n",
    by: '',
    ...PARTS,
    red: 'is refused where its parts are not those that its changes name',
  },
  {
    without: 'a bound on the size of a part',
    text: 'if (sizeBytes > COMMIT_PART_BYTES_MAX) {',
    by: 'if (sizeBytes < 0) {',
    ...PARTS,
    red: 'has parts up to their number and size',
  },
  {
    without: 'the pace of a push for its parts',
    text: 'openBody(raw, { idleMs: BODY_IDLE_MS, pace })',
    by: 'openBody(raw, { idleMs: BODY_IDLE_MS })',
    ...PARTS,
    red: 'whose client sends more slowly than a push may',
  },
  {
    without: 'the bytes of parts that came to no event',
    text: 'disk.contents !== null && isRefused && raw.complete',
    by: 'disk.contents !== null && raw.destroyed',
    ...PARTS,
    red: 'is read on after a refusal',
  },
  {
    without: 'a look at its token when its parts have arrived',
    text: 'if (caller === null || !isPermitted(caller)) return refuse(noLongerValid(principal));',
    by: 'if (caller === null) return { principal, repository };',
    ...PARTS,
    file: 'core/use-cases/pushing/hold-contents.ts',
    red: 'is decided for no token that was revoked while it arrived',
  },
  {
    without: 'its contents in what a repeat is compared by',
    text: '{ ...body, contents: digestible(contents) }',
    by: 'body',
    ...PARTS,
    file: 'apps/api/handlers/commits.ts',
    red: 'is a repeat only with the same contents',
  },
  {
    without: 'a removal of the names of its contents on the disk',
    text: '    await unlink(path);\n',
    by: '',
    ...CONTENTS,
    red: 'have no names on the disk',
  },
  {
    without: 'an end of the count of the bytes of a content that has arrived',
    text: '      arriving.release();\n',
    by: '',
    ...CONTENTS,
    red: 'count among the packs that arrive',
  },
];

export const WRITTEN_COMMIT_MUTATIONS: readonly Mutation[] = MUTATIONS.map((mutation) => ({
  ...mutation,
  without: `${mutation.without}, of a commit over the API`,
}));
