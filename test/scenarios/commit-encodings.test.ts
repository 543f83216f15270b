/** A commit in another encoding, on each surface that shows it: what git shows of it. */
import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import type { SiteBrowser } from '../support/form-browser.ts';
import { signIn } from '../support/site-browser.ts';
import {
  type Account,
  api,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
} from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { createWebhook, type WebhookReceiver, webhookReceivers } from '../support/webhook-receiver.ts';

/** The names of encodings, and texts of those bytes: the last is not in its encoding. */
const COMMITS = [
  { encoding: 'EUCJP', text: '\xc6\xfc\xcb\xdc\xb8\xec' },
  { encoding: 'CP936', text: '\xc4\xe3\xba\xc3' },
  { encoding: 'latin-1', text: 'Gr\xfc\xdfe' },
  { encoding: 'ISO-2022-JP', text: '\x1b$BF|K\\\x1b(B' },
  { encoding: 'US-ASCII', text: 'gr\xc3\xb6\xc3\x9fe' },
];

describe('A commit in another encoding', () => {
  const ending = suiteEnding();
  let strata: Strata;
  let ada: Account;
  let browser: SiteBrowser;
  let work: string;
  let receiver: WebhookReceiver;

  const get = async (target: string) =>
    JSON.parse((await api(strata, ada.token, 'GET', `/v1/repos/ada/old/${target}`)).text);
  /** Name, newest first, and message of each commit, as git shows them. */
  const shown = async () => {
    const format = '--format=%an%x00%B%x00';
    const fields = (await git(work, ['log', '--encoding=UTF-8', format, 'old'])).split('\0');
    return COMMITS.map((_, at) => ({ name: fields[2 * at]?.trim() ?? '', message: fields[2 * at + 1] ?? '' }));
  };

  beforeAll(async () => {
    const receivers = await webhookReceivers(ending);
    strata = await startNode(ending, await sharedParts(ending), receivers.env);
    ada = await createAccount(strata, 'ada');
    browser = await signIn(strata, ada);
    work = await newWorkTree(ending);
    const url = await createRepository(strata, ada, 'old');
    const commits = COMMITS.map(({ encoding, text }, at) => {
      const who = `${text} <a@example.org> ${1_700_000_000 + at} +0000`;
      const head = `commit refs/heads/old\nauthor ${who}\ncommitter ${who}\nencoding ${encoding}\n`;
      return Buffer.from(`${head}data ${text.length + 1}\n${text}\n\n`, 'latin1');
    });
    await git(work, ['fast-import', '--quiet'], Buffer.concat(commits));
    receiver = await receivers.start();
    await createWebhook(strata, ada, receiver.url, ['push']);
    await git(work, ['push', '--quiet', url, 'old:main', 'old:refs/tags/v1']);
  });

  test('is shown alike by the read model, from the objects, with a tag and on pages', async () => {
    const expected = await shown();
    assert.deepEqual(
      expected.map(({ message }) => message),
      ['größe\n', '日本\n', 'Grüße\n', '你好\n', '日本語\n'],
    );
    // The default branch comes from the read model, and a tag from the objects.
    for (const target of ['commits', 'commits?ref=refs/tags/v1']) {
      const { commits } = await get(target);
      const read = commits.map((commit: { author: { name: string }; message: string }) => ({
        name: commit.author.name,
        message: commit.message,
      }));
      assert.deepEqual(read, expected, target);
      assert.equal((await get(`commits/${commits[1].hexsha}`)).message, expected[1]?.message);
    }
    assert.equal((await get('tags')).tags[0].commit.message, expected[0]?.message);
    const page = (await browser.get('/ada/old/commits/main')).html;
    for (const { message } of expected) assert.ok(page.includes(message.trim()), message);
  });

  test('is told to webhooks alike', async () => {
    const expected = await shown();
    const deliveries = await receiver.until(2);
    const told = deliveries.find(({ payload }) => payload.ref === 'refs/heads/main')?.payload.commits ?? [];
    assert.deepEqual(
      told.map(({ message, author: { name } }) => ({ name, message })),
      expected.toReversed(),
    );
  });
});
