/**
 * The attack: a request of some hundred bytes for an archive keeps git busy for as long as its client cares to read, so
 * an account that asks for many and reads none has the processes that everybody's fetches and pushes need.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, test } from 'vitest';
import { ARCHIVE_READER_WAIT_MS } from '../../apps/front-door/reader-pace.ts';
import { ARCHIVES_AT_ONCE_OF_ACCOUNT_MAX } from '../../core/kernel/limits.ts';
import { suiteEnding } from '../support/cleanup.ts';
import { gitBelow, NO_PROC } from '../support/git-below.ts';
import { eventually } from '../support/processes.ts';
import { skippedFor } from '../support/skipped.ts';
import { type Account, createAccount, createRepository, git, newWorkTree, type Strata } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

/** An account's share of what is kept for answers is an eighth: less than the archive takes. */
const CACHE_BYTES_MAX = 64 * 1024 * 1024;

describe('A client that begins archives and does not read them', skippedFor(NO_PROC), () => {
  const ending = suiteEnding();
  let strata: Strata;
  let mallory: Account;
  let ada: Account;
  let clone: string;

  beforeAll(async () => {
    strata = await startNode(ending, await sharedParts(ending), { STRATA_CACHE_BYTES_MAX: String(CACHE_BYTES_MAX) });
    mallory = await createAccount(strata, 'mallory', 'FREE');
    ada = await createAccount(strata, 'ada', 'FREE');
    const work = await newWorkTree(ending);
    // More than the sockets between git and its client hold.
    await writeFile(path.join(work, 'large'), randomBytes(24 * 1024 * 1024));
    await git(work, ['add', 'large']);
    await git(work, ['commit', '--quiet', '-m', 'Large']);
    await git(work, ['push', '--quiet', await createRepository(strata, mallory, 'large'), 'main']);
    clone = await createRepository(strata, ada, 'small');
    await git(work, ['push', '--quiet', clone, 'main~1:refs/heads/main']);
  });

  const archives = (): number => gitBelow(strata.process.pid).filter((command) => command === 'archive').length;

  const download = (account: Account, name: string): Promise<Response> => {
    const headers = { authorization: `Bearer ${account.token}` };
    return fetch(`${strata.url}/v1/repos/${account.username}/${name}/archive/main.zip`, { headers });
  };

  /** Asks for an archive, and reads no more than its beginning. */
  async function begin(): Promise<Socket> {
    const socket = connect(Number(new URL(strata.url).port), '127.0.0.1');
    socket.on('error', () => undefined);
    const head = [`GET /v1/repos/mallory/large/archive/main.zip HTTP/1.1`, 'Host: localhost'];
    socket.write(`${[...head, `Authorization: Bearer ${mallory.token}`].join('\r\n')}\r\n\r\n`);
    const [start] = (await once(socket, 'data')) as [Buffer];
    assert.match(start.toString('latin1'), /^HTTP\/1\.1 200 /);
    socket.pause();
    return socket;
  }

  test('has few of them, keeps nobody else waiting, and loses them when its time is over or it leaves', async () => {
    const share = Array.from({ length: ARCHIVES_AT_ONCE_OF_ACCOUNT_MAX }, () => null);
    const leaving = await Promise.all(share.map(begin));
    assert.equal(archives(), share.length);
    for (const socket of leaving) socket.destroy();
    await eventually('git ends when its client leaves', () => archives() === 0);

    const stalled = await Promise.all(share.map(begin));
    const refused = await download(mallory, 'large');
    assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '5']);
    assert.equal((await (await download(ada, 'small')).arrayBuffer()).byteLength > 0, true);
    await git(await tempDir(ending), ['clone', '--quiet', clone, 'clone']);
    assert.equal(archives(), share.length, 'git waits for its reader');
    await sleep(ARCHIVE_READER_WAIT_MS);
    await eventually('git waits no longer', () => archives() === 0);
    assert.equal((await (await download(mallory, 'large')).arrayBuffer()).byteLength > 24 * 1024 * 1024, true);
    for (const socket of stalled) socket.destroy();
    assert.doesNotMatch(strata.log(), /"status":500|Unhandled|Recovered from an error/);
  });
});
