/**
 * The attack: a push of a few hundred kilobytes whose commits say a megabyte each, on a thousand refs, of which webhooks
 * are to be told: gigabytes of payloads to make, keep and send, while others wait.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  WEBHOOK_PAYLOAD_BYTES_MAX,
  WEBHOOK_PAYLOAD_COMMITS_MAX,
  WEBHOOK_PUSH_PAYLOADS_BYTES_MAX,
  WEBHOOK_PUSH_REFS_MAX,
} from '../../core/kernel/limits.ts';
import { api, createAccount, createRefs, createRepository, git, gitUrl, newWorkTree } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { createWebhook, type Payload, type ReceivedDelivery, receiverHouse } from '../support/webhook-receiver.ts';

const MESSAGE_BYTES = 1024 * 1024;
const SHARE_BYTES = Math.floor(WEBHOOK_PUSH_PAYLOADS_BYTES_MAX / (2 * WEBHOOK_PUSH_REFS_MAX));

/** A hundred commits on top of each other (git-fast-import(1)). */
function hugeMessages(): string {
  const person = `${'n'.repeat(10_000)} <${'e'.repeat(10_000)}@example.org> 1700000000 +0000`;
  const commits = Array.from({ length: WEBHOOK_PAYLOAD_COMMITS_MAX }, (_, n) => {
    const message = `Commit ${n}\n\n`.padEnd(MESSAGE_BYTES, 'long ');
    const from = n === 0 ? 'from refs/heads/main^0\n' : '';
    return `commit refs/heads/huge\nauthor ${person}\ncommitter ${person}\ndata ${message.length}\n${message}\n${from}\n`;
  });
  return commits.join('');
}

describe('A push of huge commits on a thousand refs', () => {
  test('is told in payloads of bounded size, in sum too, and holds up nobody else', async (context) => {
    const house = await receiverHouse(context);
    const strata = await startNode(context, await sharedParts(context), house.env);
    const [mallory, ada] = [await createAccount(strata, 'mallory'), await createAccount(strata, 'ada')];
    const [flooded, other] = [await house.receiver(), await house.receiver()];
    await createWebhook(strata, mallory, flooded.url, ['create']);
    const webhook = await createWebhook(strata, ada, other.url, ['push', 'ping']);
    const remote = await createRepository(strata, mallory, 'engine');
    await createRepository(strata, ada, 'notes');
    const work = await newWorkTree(context);
    await git(work, ['push', '--quiet', remote, 'main']);
    await git(work, ['fast-import', '--quiet'], hugeMessages());
    const tip = (await git(work, ['rev-parse', 'huge'])).trim();
    await git(work, ['push', '--quiet', remote, 'huge']);
    const [, alone] = await flooded.until(2);
    const wide = await newWorkTree(context);
    await git(wide, ['fetch', '--quiet', work, 'huge']);
    const second = await createRepository(strata, mallory, 'wide');
    const refs = Array.from({ length: WEBHOOK_PUSH_REFS_MAX }, (_, at) => `refs/heads/${String(at).padStart(4, '0')}`);
    await createRefs(wide, refs, tip);
    await git(wide, ['push', '--quiet', second, 'refs/heads/0*:refs/heads/0*']);

    await git(work, ['push', '--quiet', gitUrl(strata, ada, 'notes'), 'main']);
    assert.equal((await api(strata, ada.token, 'POST', `/v1/webhooks/${webhook.id}/ping`)).status, 202);
    await other.until(2);
    assert.ok(flooded.received.length < 2 + WEBHOOK_PUSH_REFS_MAX, 'before the flood had passed');

    const received = await flooded.until(2 + WEBHOOK_PUSH_REFS_MAX);
    assertTold(alone, 'refs/heads/huge', WEBHOOK_PAYLOAD_BYTES_MAX);
    assert.match(alone?.payload.commits.at(-1)?.message ?? '', /^Commit 99\n\nlong .*…$/);
    for (const [index, ref] of refs.entries()) assertTold(received[2 + index], ref, SHARE_BYTES);
    const stored = received.reduce((sum, { raw }) => sum + raw.length, 0);
    assert.ok(stored < WEBHOOK_PUSH_PAYLOADS_BYTES_MAX, String(stored));
    assert.doesNotMatch(strata.log(), /"level":50/);
  });
});

function assertTold(delivery: ReceivedDelivery | undefined, ref: string, bytesMax: number): void {
  assert.ok(delivery !== undefined && delivery.raw.length <= bytesMax, `${ref} in ${delivery?.raw.length} bytes`);
  const { ref: told, commits }: Payload = delivery.payload;
  assert.equal(told, ref);
  // On a new repository the commit below them is new, too, and the payload is full.
  assert.deepEqual([commits.length, commits.at(-1)?.id], [WEBHOOK_PAYLOAD_COMMITS_MAX, delivery.payload.after]);
}
