/**
 * Attempts to read without permission: objects that no ref reached, or none after a purge, other accounts'
 * repositories, and ways around the checks.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { type Ending, suiteEnding } from '../support/cleanup.ts';
import {
  basicAuthorization,
  DELIMITER,
  FLUSH,
  packet,
  postService,
  type WireObject,
  type WireTarget,
  wireFetch,
  wireObject,
  wirePush,
} from '../support/git-wire.ts';
import { rawRequest } from '../support/raw-http.ts';
import { type Account, api, createAccount, git } from '../support/strata.ts';
import { tempDir } from '../support/temp-dir.ts';
import { cannotBeFetched, startWatchedServer, type WatchedServer } from '../support/watched-push.ts';
import { type Story, story } from '../support/wire-story.ts';

const MAIN = 'refs/heads/main';
const VERSIONS = [0, 2] as const;

describe('An object that no ref reached, or none after a purge', () => {
  const ending = suiteEnding();
  let server: WatchedServer;
  const open = story('open to all');

  beforeAll(async () => {
    server = await startWatchedServer(ending);
  });

  async function newTarget(): Promise<WireTarget> {
    const target = await server.newTarget();
    const pushed = await wirePush(target, [{ ref: MAIN, after: open.tip.id }], open.all);
    assert.equal(pushed.refs.get(MAIN), 'ok', pushed.remote);
    return target;
  }

  async function purge({ strata, account, name }: WireTarget): Promise<void> {
    const { body } = await api(strata, account.token, 'GET', `/v1/repos/${account.username}/${name}`);
    const { id } = body as { readonly id: string };
    const purged = await api(strata, account.token, 'POST', `/v1/repositories/${id}/purge`, {});
    assert.equal(purged.status, 202, purged.text);
  }

  async function stillServes(target: WireTarget): Promise<void> {
    for (const version of VERSIONS) {
      for (const { id } of open.all) assert.ok('pack' in (await wireFetch(target, id, version)), `${id} v${version}`);
    }
  }

  test('cannot be fetched when its push was refused in part, whatever the reason', async () => {
    const refusals: readonly (readonly [string, (secret: Story) => { ref: string; before?: string; after: string }])[] =
      [
        ['a bad name', ({ tip }) => ({ ref: 'refs/heads/..', after: tip.id })],
        ['a name outside', ({ tip }) => ({ ref: 'refs/strata/x', after: tip.id })],
        ['a ref moved by another', ({ tip }) => ({ ref: MAIN, before: tip.id, after: tip.id })],
        ['a ref that exists', ({ tip }) => ({ ref: MAIN, after: tip.id })],
        ['a collision', ({ tip }) => ({ ref: `${MAIN}/below`, after: tip.id })],
        ['a branch to a tree', ({ folder }) => ({ ref: 'refs/heads/tree', after: folder.id })],
      ];
    for (const [what, refused] of refusals) {
      const target = await newTarget();
      const secret = story(`secret: ${what}`, [open.tip.id]);
      const public_ = story(`public: ${what}`, [open.tip.id]);
      const commands = [{ ref: 'refs/heads/fine', after: public_.tip.id }, refused(secret)];
      const report = await wirePush(target, commands, [...secret.all, ...public_.all]);
      assert.deepEqual([...report.refs.values()].filter((word) => word === 'ok').length, 1, what);
      for (const { id } of secret.all) await cannotBeFetched(target, id);
      assert.ok('pack' in (await wireFetch(target, public_.file.id, 2)));
      await stillServes(target);
    }
  });

  test('cannot be fetched after its branch was forced or deleted and the repository purged, not even the tip', async () => {
    for (const leave of ['forced', 'deleted'] as const) {
      const target = await newTarget();
      const first = story(`first secret, ${leave}`, [open.tip.id]);
      const second = story(`second secret, ${leave}`, [first.tip.id]);
      const ref = 'refs/heads/leaving';
      await wirePush(target, [{ ref, after: second.tip.id }], [...first.all, ...second.all]);
      for (const { id } of first.all) assert.ok('pack' in (await wireFetch(target, id, 2)));
      const away = leave === 'forced' ? { after: open.tip.id } : {};
      const left = await wirePush(target, [{ ref, before: second.tip.id, ...away }], leave === 'forced' ? [] : null);
      assert.equal(left.refs.get(ref), 'ok', left.remote);
      for (const { id } of [...first.all, ...second.all]) assert.ok('pack' in (await wireFetch(target, id, 0)));
      await purge(target);
      for (const { id } of [...first.all, ...second.all]) await cannotBeFetched(target, id);
      await stillServes(target);
    }
  });

  test('is not sent to a client that claims it as the edge of a shallow clone', async (context) => {
    const target = await newTarget();
    const first = story('a secret parent', [open.tip.id]);
    const second = story('its secret child', [first.tip.id]);
    const refused = [
      { ref: 'refs/heads/fine', after: open.tip.id },
      { ref: 'refs/heads/..', after: second.tip.id },
    ];
    await wirePush(target, refused, [...first.all, ...second.all]);
    const secrets = [...first.all, ...second.all].map(({ id }) => id);
    for (const version of VERSIONS) {
      for (const deepen of [
        ['deepen 2147483647'],
        ['deepen 5'],
        ['deepen 5', 'deepen-relative'],
        ['deepen-since 1'],
        [],
      ]) {
        // In v0 deepen-relative is a capability; a line of that name is refused.
        if (version === 0 && deepen.includes('deepen-relative')) continue;
        for (const have of [[], [`have ${second.tip.id}`]]) {
          if (version === 0 && have.length > 0) continue;
          const more = [`shallow ${second.tip.id}`, ...deepen, ...have];
          const fetched = await wireFetch(target, open.tip.id, version, more);
          if ('refused' in fetched) continue;
          const got = await objectsIn(context, fetched.pack, open.all);
          assert.deepEqual(
            secrets.filter((id) => got.has(id)),
            [],
            `v${version} ${more.join()}`,
          );
        }
      }
    }
  });

  test('gets the same answer as an object that never existed', async () => {
    const target = await newTarget();
    const secret = story('secret', [open.tip.id]);
    const refused = [
      { ref: 'refs/heads/fine', after: open.tip.id },
      { ref: 'refs/heads/..', after: secret.tip.id },
    ];
    await wirePush(target, refused, secret.all);
    const missing = 'ab'.repeat(20);
    for (const version of VERSIONS) {
      const said = async (id: string): Promise<string> => {
        const answer = await wireFetch(target, [open.tip.id, id], version);
        assert.ok('refused' in answer);
        return answer.refused.replaceAll(id, 'ID');
      };
      for (const { id } of secret.all) assert.equal(await said(id), await said(missing));
    }
  });

  test('cannot be fetched from another repository of the same account', async () => {
    const target = await newTarget();
    const other = await server.newTarget();
    for (const { id } of open.all) await cannotBeFetched(other, id);
    const tag = wireObject('tag', `object ${open.tip.id}\ntype commit\ntag t\ntagger A <a@example.org> 1 +0000\n\nt\n`);
    const tagged = await wirePush(target, [{ ref: 'refs/tags/t', after: tag.id }], [tag]);
    assert.equal(tagged.refs.get('refs/tags/t'), 'ok', tagged.remote);
    assert.ok('pack' in (await wireFetch(target, tag.id, 0)));
    await cannotBeFetched(other, tag.id);
  });
});

describe('A fetch', () => {
  const ending = suiteEnding();
  let server: WatchedServer;
  let target: WireTarget;
  let eve: Account;
  const open = story('open to all');

  beforeAll(async () => {
    server = await startWatchedServer(ending);
    eve = await createAccount(server.strata, 'eve');
    target = await server.newTarget();
    await wirePush(target, [{ ref: MAIN, after: open.tip.id }], open.all);
  });

  test('that is malformed, or uses a feature that was not offered, is refused', async () => {
    const { id } = open.tip;
    const v2 = (...lines: readonly string[]): Buffer =>
      Buffer.concat([packet('command=fetch\n'), DELIMITER, ...lines.map((line) => packet(`${line}\n`)), FLUSH]);
    for (const [body, version] of [
      [v2('want HEAD', 'done'), 2],
      [v2(`want ${MAIN}`, 'done'), 2],
      [v2(`want-ref ${MAIN}`, 'done'), 2],
      [v2(`want ${id.slice(0, 12)}`, 'done'), 2],
      [v2(`want ${id} ${id}`, 'done'), 2],
      [v2(`want --upload-pack=id`, 'done'), 2],
      [v2(`want ${id}`, 'filter sparse:oid=HEAD:file', 'done'), 2],
      [v2(`want ${id}`, 'filter sparse:path=file', 'done'), 2],
      [v2(`want ${id}`, 'filter combine:blob:none+tree:0', 'done'), 2],
      [v2(`want ${id}`, 'filter tree:99999999', 'done'), 2],
      [v2(`want ${id}`, 'filter object:type=blob', 'done'), 2],
      [v2(`want ${id}`, 'deepen -1', 'done'), 2],
      [v2(`want ${id}`, 'deepen 0x7fffffff', 'done'), 2],
      [v2(`want ${id}`, 'deepen 4294967297', 'done'), 2],
      [v2(`want ${id}`, 'deepen-not --all', 'done'), 2],
      [v2(`want ${id}`, `deepen-not ${id}`, 'done'), 2],
      [v2(`want ${id}`, 'packfile-uris https', 'done'), 2],
      [v2(`want ${id}`, 'sideband-all', 'done'), 2],
      [Buffer.concat([packet('command=object-info\n'), DELIMITER, packet('size\n'), packet(`oid ${id}\n`), FLUSH]), 2],
      [Buffer.concat([packet('command=bundle-uri\n'), FLUSH]), 2],
      [Buffer.concat([packet('command=fetch\n'), packet('server-option=x\n'), packet('x-unknown=1\n'), FLUSH]), 2],
      [Buffer.concat([packet(`want ${id}\0side-band-64k\n`), FLUSH, packet('done\n')]), 0],
      [Buffer.concat([packet(`want ${id} side-band-64k\n`), packet('filter blob:none\n'), FLUSH, packet('done\n')]), 0],
      [Buffer.concat([packet(`want ${MAIN} side-band-64k\n`), FLUSH, packet('done\n')]), 0],
    ] as const) {
      const headers = { 'Git-Protocol': `version=${version}` };
      const answer = await postService(target, 'git-upload-pack', body, { headers });
      const text = answer.bytes.toString('latin1');
      assert.doesNotMatch(text, /PACK\0/, body.toString('latin1'));
      assert.ok(answer.status === 400 || /ERR /.test(text), `${body.toString('latin1')}: ${answer.status} ${text}`);
    }
  });

  test("of another account's repository gets the same answer as one of a repository that does not exist", async () => {
    const headers = [`Authorization: ${basicAuthorization(eve)}`];
    const get = async (owner: string, name: string, service: string) => {
      const answer = await rawRequest(server.port, {
        target: `/r/${owner}/${name}.git/info/refs?service=${service}`,
        headers,
      });
      const { date: _, 'x-request-id': __, ...rest } = answer.headers;
      return { ...answer, headers: rest };
    };
    for (const service of ['git-upload-pack', 'git-receive-pack']) {
      const none = await get('ada', 'none', service);
      assert.equal(none.status, 404);
      for (const [owner, name] of [
        ['ada', target.name],
        ['ada', target.name.toUpperCase()],
        ['nobody', target.name],
        ['eve', target.name],
      ] as const) {
        assert.deepEqual(await get(owner, name, service), none, `${owner} ${name}`);
      }
    }
    const asEve = { ...target, account: { username: 'ada', token: eve.token } };
    assert.match(JSON.stringify(await wireFetch(asEve, open.tip.id, 2)), /404 Repository not found/);
    const pushed = await wirePush(asEve, [{ ref: MAIN, before: open.tip.id }], null);
    assert.deepEqual([pushed.status, pushed.remote], [404, 'Repository not found\n']);
    assert.ok('pack' in (await wireFetch(target, open.tip.id, 2)));
  });

  test('finds nothing in a new repository that has the name of a deleted one', async () => {
    const reborn = await server.newTarget();
    const secret = story('secret of the former');
    await wirePush(reborn, [{ ref: MAIN, after: secret.tip.id }], secret.all);
    const about = { method: 'DELETE', headers: { Authorization: `Bearer ${server.ada.token}` } };
    const deleted = await fetch(`${server.strata.url}/v1/repos/ada/${reborn.name}`, about);
    assert.equal(deleted.status, 204);
    assert.match(JSON.stringify(await wireFetch(reborn, secret.tip.id, 2)), /404/);
    const created = await fetch(`${server.strata.url}/v1/repositories`, {
      method: 'POST',
      headers: { ...about.headers, 'Content-Type': 'application/json' },
      body: JSON.stringify({ name: reborn.name }),
    });
    assert.equal(created.status, 201);
    for (const { id } of secret.all) await cannotBeFetched(reborn, id);
  });
});

/** Unpacks the pack with the real git, next to the objects that the client already has. */
async function objectsIn(ending: Ending, packed: Buffer, known: readonly WireObject[]): Promise<ReadonlySet<string>> {
  const folder = path.join(await tempDir(ending), 'objects.git');
  await git('/', ['init', '--quiet', '--bare', folder]);
  for (const { type, bytes } of known.toReversed()) {
    await git(folder, ['hash-object', '-w', '--literally', '-t', type, '--stdin'], bytes);
  }
  await git(folder, ['index-pack', '--stdin', '--fix-thin'], packed);
  const listed = await git(folder, ['cat-file', '--batch-all-objects', '--batch-check=%(objectname)']);
  return new Set(listed.trim().split('\n'));
}
