/**
 * What keeps an operator from losing data beside a restored log, or from giving it away unsaid, each guard with the
 * test that fails without it.
 */
import type { Mutation } from './mutation.ts';

const EXPLAINING = 'core/use-cases/verifying/explain-missing-layer.ts';
const REFERENCES = 'test/apps/admin/verify-references.test.ts';
const ADOPTING = 'core/use-cases/manifests/adopt-manifest.ts';
const ADOPTION = 'test/apps/admin/adopt-storage.test.ts';
const CHECKPOINTS = 'core/use-cases/auditing/checkpoints.ts';
const TAIL_LOSS = 'test/core/use-cases/auditing/accept-tail-loss.test.ts';
const REBUILDING = 'core/use-cases/manifests/rebuild-repository.ts';
const REBUILD = 'test/core/use-cases/manifests/rebuild-repository.test.ts';
const PLANS = 'test/core/use-cases/manifests/adopt-manifest.test.ts';

export const RESTORED_LOG_MUTATIONS: readonly Mutation[] = [
  {
    without: 'restored log: a look at what the newer manifest names',
    file: EXPLAINING,
    text: 'if ((await store.head(key))?.sizeBytes !== sizeBytes) return null;',
    by: 'await store.head(key).then(() => sizeBytes);',
    test: REFERENCES,
    red: 'they are lost if the store lacks a layer that the newer manifest names',
  },
  {
    without: 'restored log: an explanation only by a manifest that is newer than the log',
    file: EXPLAINING,
    text: 'found.revision <= revision',
    by: 'found.revision < revision',
    test: REFERENCES,
    red: 'a replaced layer is lost if the newest manifest is as old as the log',
  },
  {
    without: 'restored log: the one entry of a lost checkpoint after a crash',
    file: 'core/use-cases/auditing/accept-tail-loss.ts',
    text: "if (await isInAccountLog(context, account, { type: 'LogTailLost', members: { size, root } })) return null;",
    by: 'await context.events.head();',
    test: TAIL_LOSS,
    red: 'says it once, though the process died before the checkpoint left its place',
  },
  {
    without: 'restored log: the entry before the checkpoint leaves its place',
    file: CHECKPOINTS,
    text: 'if (await record()) await store.delete(keyOf(account, size));',
    by: 'await store.delete(keyOf(account, size));\n  await record();',
    test: TAIL_LOSS,
    red: 'says it once, though the process died before the checkpoint left its place',
  },
  {
    without: 'restored log: the end of adoptions where the log went on',
    file: ADOPTING,
    text: "if (await wentOn(context, entity, manifest)) return { refused: 'log-went-on' };",
    by: 'await wentOn(context, entity, manifest);',
    test: ADOPTION,
    red: 'nothing is adopted over what was pushed after the restore',
  },
  {
    without: 'restored log: the rest of an adoption that died',
    file: ADOPTING,
    text: "actor.kind !== 'admin' || actor.id !== ADOPTION",
    by: "actor.kind !== 'admin' || actor.id !== ''",
    test: ADOPTION,
    red: 'a run that died after it deleted the refs is finished by the next',
  },
  {
    without: 'restored log: the deletion of refs whose tips are gone',
    file: ADOPTING,
    text: 'if (lost.size === 0) return true;',
    by: 'if (lost.size >= 0) return true;',
    test: ADOPTION,
    red: 'a repository that was purged after the backup can be read again',
  },
  {
    without: 'restored log: the layers that were stored after the backup',
    file: ADOPTING,
    text: 'added: listed.filter(({ id }) => !known.has(id)),',
    by: 'added: listed.filter(({ id }) => known.get(id) === undefined && id === null),',
    test: ADOPTION,
    red: 'a repository that was purged after the backup can be read again',
  },
  {
    without: 'restored log: the stay of layers that are still in the store',
    file: ADOPTING,
    text: 'gone: leaving.filter(({ key }) => !stored.has(key))',
    by: 'gone: leaving.filter(({ key }) => key !== null)',
    test: ADOPTION,
    red: 'layers that the manifest names no longer stay in the store while they are there',
  },
  {
    without: 'restored log: the end of layers that compactions before the backup replaced',
    file: ADOPTING,
    text: 'const gone = replaced.slice(0, last + 1);',
    by: 'const gone = replaced.slice(0, last - last);',
    test: ADOPTION,
    red: 'layers that compactions before the backup replaced, and that are gone, are let go too',
  },
  {
    without: 'restored log: the refusal of manifests that anybody may have written',
    file: ADOPTING,
    text: "if (place.storageBucketId !== null) return { refused: 'in-bucket' };",
    by: '',
    test: PLANS,
    red: 'a manifest in a bucket of a user is not adopted',
  },
  {
    without: 'restored log: the check of a known layer by what the log says',
    file: ADOPTING,
    text: 'known.get(layer.id) ?? layer',
    by: 'layer ?? known.get(layer)',
    test: PLANS,
    red: 'is checked by what the log says of it',
  },
  {
    without: 'restored log: the refusal to sign a log that lacks what was signed',
    file: CHECKPOINTS,
    text: 'if (last.size > entries) throw contradiction(account, last.size, `has only ${entries} entries`);',
    by: 'if (last.size > entries) return;',
    test: TAIL_LOSS,
    red: 'is signed again once it says what it lost',
  },
  {
    without: 'restored log: the stay of a lost checkpoint in the store',
    file: CHECKPOINTS,
    text: 'const stored = await store.put(key, singleChunk(bytes), bytes.length);',
    by: "const stored = singleChunk(bytes) === null ? '' : 'stored';",
    test: TAIL_LOSS,
    red: 'and the lost checkpoint stays in the store',
  },
  {
    without: 'restored log: the count of logs that do not continue their last checkpoint',
    file: 'core/use-cases/auditing/check-checkpoints.ts',
    text: 'else found += 1;',
    by: 'else found += 0;',
    test: TAIL_LOSS,
    red: 'is counted until the loss is accepted',
  },
  {
    without: 'restored log: the root of the checkpoint whose loss an entry accepts',
    file: 'apps/verifier/verify.ts',
    text: 'one.size === size && one.root === hash',
    by: 'one.size === size && one.root !== null',
    test: 'test/apps/verifier/verify.test.ts',
    red: 'names the entry by which the operator accepted the loss of an older checkpoint',
  },
  {
    without: "rebuild: the entries of both logs, before anything is in a repository of another's manifest",
    file: REBUILDING,
    text: 'await recordIn(context, wanted, repository.id);',
    by: '',
    test: REBUILD,
    red: 'is in both logs once, also after a kill',
  },
  {
    without: 'rebuild: the one entry of a log after a kill',
    file: REBUILDING,
    text: "if (await isInAccountLog(context, account, { type: 'RepositoryRebuilt', members })) continue;",
    by: '',
    test: REBUILD,
    red: 'is in both logs once, also after a kill',
  },
];
