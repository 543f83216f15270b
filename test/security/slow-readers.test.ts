/**
 * The attack: clients read so slowly that an answer finds no room and no slot. On each surface that ends the answer,
 * and shows nobody an outage: else one account could have the operator called.
 */
import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { NO_ROOM_FOR_READER } from '../../apps/front-door/texts/denials.ts';
import type { ObjectId } from '../../core/kernel/ids.ts';
import { ReaderTooSlow } from '../../core/kernel/reader-too-slow.ts';
import { CONTENTS_BUFFERED_BYTES_MAX } from '../../core/use-cases/reading/read-contents.ts';
import type { TestToken } from '../support/api-fixture.ts';
import { cleanUp, suiteEnding } from '../support/cleanup.ts';
import { type GitFixture, startGit } from '../support/git-fixture.ts';
import { DELIMITER, FLUSH, packet } from '../support/git-wire.ts';
import { eventually } from '../support/processes.ts';
import { type Browser, createWebsiteFixture, type WebsiteFixture } from '../support/website.ts';

describe('An answer that ends because clients read too slowly', () => {
  const ending = suiteEnding();
  /** What is sent of each answer before it ends. */
  let begun: readonly Buffer[] = [];
  let fixture: WebsiteFixture;
  let server: GitFixture;
  let browser: Browser;
  let token: TestToken;
  let tip: ObjectId;

  beforeAll(async () => {
    const ends = async function* (): AsyncGenerator<Uint8Array> {
      yield* begun;
      throw new ReaderTooSlow('Too many processes wait for slow readers');
    };
    fixture = await createWebsiteFixture({
      api: {
        objects: ({ database }) => ({
          ...database,
          open: async (of) => ({ ...(await database.open(of)), uploadPack: ends, blob: ends, archive: ends }),
        }),
      },
    });
    cleanUp(ending, () => fixture.close());
    const { api } = fixture;
    const ada = await api.account('ada');
    const large = api.objects.blob('l'.repeat(CONTENTS_BUFFERED_BYTES_MAX + 1));
    tip = api.objects.commit({ tree: api.objects.tree({ large: ['100644', large] }), seconds: 1 });
    await api.push(await api.repository(ada, 'code', 'main'), { 'refs/heads/main': tip });
    token = await api.token(ada);
    browser = await fixture.signedIn(ada);
    server = await startGit(api);
    cleanUp(ending, () => server.close());
  });

  const fetched = () => {
    const lines = [packet('command=fetch\n'), DELIMITER, packet(`want ${tip}\n`), packet('done\n'), FLUSH];
    const headers = { 'content-type': 'application/x-git-upload-pack-request', 'git-protocol': 'version=2' };
    return server.request('POST', '/r/ada/code.git/git-upload-pack', token, { body: Buffer.concat(lines), headers });
  };
  const read = async (target: string) => {
    const { statusCode, body } = await fixture.api.request('GET', `/v1/repos/ada/code/${target}`, token);
    return { status: statusCode, text: body };
  };
  const surfaces: readonly (readonly [string, () => Promise<{ readonly status: number; readonly text: string }>])[] = [
    ['a large file', () => read('contents/large?raw=true')],
    ['an archive', () => read('archive/main.tar.gz')],
    [
      'a file of the website',
      async () => {
        const { status, html } = await browser.get('/ada/code/raw/main/large');
        return { status, text: html };
      },
    ],
  ];

  test('is told to git before its first bytes', async () => {
    begun = [];
    const { status, text } = await fetched();
    assert.deepEqual([status, text], [200, String(packet(`ERR ${NO_ROOM_FOR_READER.text}`))]);
    await eventually('the request has ended', () => server.finished.length === 1);
    assert.deepEqual(fixture.api.logged, []);
  });

  for (const [name, ask] of surfaces) {
    test(`is refused before its first bytes: ${name}`, async () => {
      begun = [];
      const { status, text } = await ask();
      assert.equal(status, 429);
      assert.ok(text.includes(NO_ROOM_FOR_READER.text), text);
      assert.deepEqual(fixture.api.logged, []);
    });
  }

  for (const [name, ask] of [['a fetch', fetched], ...surfaces] as const) {
    test(`breaks its connection after them, and is no fault: ${name}`, async () => {
      begun = [Buffer.alloc(64 * 1024)];
      const finished = server.finished.length;
      await ask().catch(() => null);
      if (ask === fetched) await eventually('it has ended', () => server.finished.length === finished + 1);
      assert.deepEqual(fixture.api.logged, []);
    });
  }
});
