/**
 * A real server whose deliveries, sign-ins and reads have passed retention: they leave the log and the lists, and all
 * still agrees.
 */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'vitest';
import type { ExpiryReport } from '../../apps/admin/expire-storage.ts';
import { RETENTION_DAYS_DEFAULT } from '../../apps/server/settings.ts';
import {
  admin,
  api,
  createAccount,
  createRepository,
  createToken,
  git,
  gitUrl,
  newWorkTree,
} from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';
import { createWebhook, listDeliveries, untilDeliveries, webhookReceivers } from '../support/webhook-receiver.ts';

const SET_CLOCK = path.resolve(import.meta.dirname, '../support/set-clock.ts');
const BEYOND_MS = ((RETENTION_DAYS_DEFAULT + 1) * 24 + 1) * 60 * 60_000;

interface Use {
  readonly reads: number;
  readonly addresses: Readonly<Record<string, { readonly value: string }>>;
}

test('deliveries and reads leave the log after the retention, with their rows, and a rebuild finds no difference', async (context) => {
  const receivers = await webhookReceivers(context);
  const shared = await sharedParts(context);
  let strata = await startNode(context, shared, receivers.env);
  const ada = await createAccount(strata, 'ada');
  const receiver = await receivers.start();
  const webhook = await createWebhook(strata, ada, receiver.url);
  const url = await createRepository(strata, ada, 'engine');
  const work = await newWorkTree(context);
  await git(work, ['push', '--quiet', url, 'main']);
  const wanted = await untilDeliveries(strata, ada, webhook.id, (list) => {
    return list.length === 2 && list.every(({ status }) => status === 'SUCCESS');
  });
  const reader = await createToken(strata, 'ada');
  await git(work, ['clone', '--quiet', gitUrl(strata, { ...ada, ...reader }, 'engine'), 'copy']);
  // A server that stops writes its reads to the log.
  await strata.stop();
  strata = await startNode(context, shared, receivers.env);
  await createRepository(strata, ada, 'later');
  const transferBytes = async (): Promise<unknown> => {
    const { body } = await api(strata, ada.token, 'GET', '/v1/account/usage/ledger');
    return (body as { readonly totals: { readonly transfer_bytes: number } }).totals.transfer_bytes;
  };
  const sent = await transferBytes();
  assert.ok(Number(sent) > 0);
  const { body: activity } = await api(strata, ada.token, 'GET', `/v1/access-tokens/${reader.id}/activity`);
  const [use, ...further] = (activity as { readonly used: readonly Use[] }).used;
  const places = Object.values(use?.addresses ?? {}).map(({ value }) => value);
  assert.deepEqual([use?.reads, places, further], [1, ['127.0.0.1'], []]);
  const prunableEvents = async (): Promise<number> =>
    (await shared.log.since()).filter(({ stream }) => /^(webhookDelivery|transfer)-/.test(stream)).length;
  assert.ok(wanted.length === 2 && (await prunableEvents()) > 2);
  const head = await shared.log.head();

  const clockFile = path.join(await tempDir(context), 'ahead-ms');
  await writeFile(clockFile, String(BEYOND_MS));
  const ahead = { ...strata.env, NODE_OPTIONS: `--import ${SET_CLOCK}`, TEST_CLOCK_FILE: clockFile };
  const report = (await admin({ env: ahead }, ['storage', 'expire'])) as ExpiryReport;
  assert.deepEqual([report.pruned, await prunableEvents()], [3, 0]);
  assert.ok((await shared.log.head()) >= head);
  assert.equal(await transferBytes(), sent);
  assert.deepEqual(await listDeliveries(strata, ada, webhook.id), []);
  const { projections } = (await admin(strata, ['projections', 'rebuild', '--verify'])) as {
    projections: { name: string; differences: number }[];
  };
  assert.deepEqual(
    projections.filter(({ differences }) => differences > 0),
    [],
  );
  const { faults } = (await admin(strata, ['log', 'verify', '--references'])) as { faults: string[] };
  assert.deepEqual(faults, []);
});
