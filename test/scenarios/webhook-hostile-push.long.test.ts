/**
 * The attack: a push of a few hundred kilobytes, whose commits have messages of a megabyte each, to a thousand refs
 * with a webhook. The server would have to build, store and send gigabytes of payloads, while other deliveries wait.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { WEBHOOK_PAYLOAD_BYTES_MAX, WEBHOOK_PAYLOAD_COMMITS_MAX } from '../../core/kernel/limits.ts';
import { WEBHOOK_PUSH_PAYLOADS_BYTES_MAX } from '../../core/use-cases/webhooks/notify-webhooks.ts';
import { WEBHOOK_PUSH_REFS_MAX } from '../../core/webhook-delivery/notifications.ts';
import {
  api,
  createAccount,
  createRefs,
  createRepository,
  git,
  gitUrl,
  newWorkTree,
  type Strata,
} from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import {
  createWebhook,
  type ListedDelivery,
  listDeliveries,
  type Payload,
  type ReceivedDelivery,
  webhookReceivers,
} from '../support/webhook-receiver.ts';

/** Just short enough for Node to keep the string on its heap. */
const MESSAGE_BYTES = 1_000_000;
const SHARE_BYTES = Math.floor(WEBHOOK_PUSH_PAYLOADS_BYTES_MAX / (2 * WEBHOOK_PUSH_REFS_MAX));

/** A script for git-fast-import(1): a hundred commits on `huge`, on top of `base`. */
function hugeMessages(first: number, base: string): string {
  const person = `${'n'.repeat(10_000)} <${'e'.repeat(10_000)}@example.org> 1700000000 +0000`;
  const commits = Array.from({ length: WEBHOOK_PAYLOAD_COMMITS_MAX }, (_, n) => {
    const message = `Commit ${first + n}\n\n`.padEnd(MESSAGE_BYTES, 'long ');
    const from = n === 0 ? `from ${base}^0\n` : '';
    return `commit refs/heads/huge\nauthor ${person}\ncommitter ${person}\ndata ${message.length}\n${message}\n${from}\n`;
  });
  return commits.join('');
}

describe('A push of huge commits', { concurrent: true }, () => {
  test('on a thousand refs is delivered in payloads of bounded size, in total too, and delays no other delivery', async (context) => {
    const receivers = await webhookReceivers(context);
    const strata = await startNode(context, await sharedParts(context), receivers.env);
    const [mallory, ada] = [await createAccount(strata, 'mallory'), await createAccount(strata, 'ada')];
    const [flooded, other] = [await receivers.start(), await receivers.start()];
    const flood = await createWebhook(strata, mallory, flooded.url, ['create']);
    const webhook = await createWebhook(strata, ada, other.url, ['push', 'ping']);
    const remote = await createRepository(strata, mallory, 'engine');
    await createRepository(strata, ada, 'notes');
    const work = await newWorkTree(context);
    await git(work, ['push', '--quiet', remote, 'main']);
    await git(work, ['fast-import', '--quiet'], hugeMessages(0, 'refs/heads/main'));
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
    assert.ok(
      flooded.received.length < 2 + WEBHOOK_PUSH_REFS_MAX,
      'the other deliveries arrived before the flood ended',
    );

    assertDelivered(alone, 'refs/heads/huge', WEBHOOK_PAYLOAD_BYTES_MAX);
    assert.match(alone?.payload.commits.at(-1)?.message ?? '', /^Commit 99\n\nlong .*…$/);
    const received = await flooded.until(50);
    for (const [index, delivery] of received.slice(2).entries())
      assertDelivered(delivery, refs[index] ?? '', SHARE_BYTES);
    const newest = () => listDeliveries(strata, mallory, flood.id, '?limit=100&include_payload=true');
    const refOf = (delivery: ListedDelivery | undefined) => (delivery?.['payload'] as Payload | undefined)?.ref;
    let last = await newest();
    for (let tries = 0; tries < 600 && refOf(last[0]) !== refs.at(-1); tries += 1) {
      await sleep(100);
      last = await newest();
    }
    assert.deepEqual(last.toReversed().map(refOf), refs.slice(-100), 'every ref is delivered');
    for (const { ['payload']: payload } of last) assert.ok(sizeOf(payload) <= SHARE_BYTES);
    assert.doesNotMatch(strata.log(), /"level":50/);
  });

  test('that is larger than the memory of the server is listed and delivered', async (context) => {
    const receivers = await webhookReceivers(context);
    const small = { ...receivers.env, NODE_OPTIONS: '--max-old-space-size=400' };
    const strata = await startNode(context, await sharedParts(context), small);
    const mallory = await createAccount(strata, 'mallory');
    const receiver = await receivers.start();
    await createWebhook(strata, mallory, receiver.url, ['push']);
    const remote = await createRepository(strata, mallory, 'engine');
    const work = await newWorkTree(context);
    const commits = 700;
    for (let first = 0; first < commits; first += WEBHOOK_PAYLOAD_COMMITS_MAX) {
      const base = first === 0 ? 'refs/heads/main' : 'refs/heads/huge';
      await git(work, ['fast-import', '--quiet'], hugeMessages(first, base));
    }
    await git(work, ['push', '--quiet', remote, 'huge:main']);
    const [delivered] = await receiver.until(1);
    assertDelivered(delivered, 'refs/heads/main', WEBHOOK_PAYLOAD_BYTES_MAX);
    const listed = await untilListed(strata, mallory.token, '/v1/repos/mallory/engine/commits?limit=1');
    assert.deepEqual([listed.pagination.total, listed.commits[0]?.hexsha], [commits + 1, delivered?.payload.after]);
    assert.equal(strata.process.exitCode ?? strata.process.signalCode, null);
  });
});

function sizeOf(payload: unknown): number {
  return Buffer.byteLength(JSON.stringify(payload));
}

interface Commits {
  readonly commits: readonly { readonly hexsha: string }[];
  readonly pagination: { readonly total: number };
}

/** Resolves with the answer when the read model has caught up. */
async function untilListed(strata: Strata, token: string, target: string): Promise<Commits> {
  const deadline = Date.now() + 120_000;
  for (;;) {
    const { status, text, body } = await api(strata, token, 'GET', target);
    if (status === 200) return body as Commits;
    if (status !== 503 || Date.now() > deadline) throw new Error(`${target} answers ${status}: ${text}`);
    await sleep(200);
  }
}

function assertDelivered(delivery: ReceivedDelivery | undefined, ref: string, bytesMax: number): void {
  assert.ok(delivery !== undefined && delivery.raw.length <= bytesMax, `${ref} in ${delivery?.raw.length} bytes`);
  const { ref: delivered, commits }: Payload = delivery.payload;
  assert.equal(delivered, ref);
  // On a new repository the commits below are new too, so the payload is full.
  assert.deepEqual([commits.length, commits.at(-1)?.id], [WEBHOOK_PAYLOAD_COMMITS_MAX, delivery.payload.after]);
}
