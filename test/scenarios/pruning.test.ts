/** A real server whose deliveries have passed retention: they leave the log and the lists, and all still agrees. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'vitest';
import type { ExpiryReport } from '../../apps/admin/expire-storage.ts';
import { RETENTION_DAYS_DEFAULT } from '../../core/kernel/limits.ts';
import { admin, createAccount, createRepository, git, newWorkTree } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';
import { createWebhook, listDeliveries, untilDeliveries, webhookReceivers } from '../support/webhook-receiver.ts';

const SET_CLOCK = path.resolve(import.meta.dirname, '../support/set-clock.ts');
const BEYOND_MS = (RETENTION_DAYS_DEFAULT * 24 + 1) * 60 * 60_000;

test('deliveries leave the log after the retention, with their rows, and a rebuild finds no difference', async (context) => {
  const receivers = await webhookReceivers(context);
  const shared = await sharedParts(context, 'postgres');
  const strata = await startNode(context, shared, receivers.env);
  const ada = await createAccount(strata, 'ada');
  const receiver = await receivers.start();
  const webhook = await createWebhook(strata, ada, receiver.url);
  const url = await createRepository(strata, ada, 'engine');
  const work = await newWorkTree(context);
  await git(work, ['push', '--quiet', url, 'main']);
  const wanted = await untilDeliveries(strata, ada, webhook.id, (list) => {
    return list.length === 2 && list.every(({ status }) => status === 'SUCCESS');
  });
  await createRepository(strata, ada, 'later');
  const deliveryEvents = async (): Promise<number> =>
    (await shared.log.since()).filter(({ stream }) => stream.startsWith('webhookDelivery-')).length;
  assert.ok(wanted.length === 2 && (await deliveryEvents()) > 2);
  const head = await shared.log.head();

  const clockFile = path.join(await tempDir(context), 'ahead-ms');
  await writeFile(clockFile, String(BEYOND_MS));
  const ahead = { ...strata.env, NODE_OPTIONS: `--import ${SET_CLOCK}`, TEST_CLOCK_FILE: clockFile };
  const report = (await admin({ env: ahead }, ['storage', 'expire'])) as ExpiryReport;
  assert.deepEqual([report.pruned, await deliveryEvents()], [2, 0]);
  assert.ok((await shared.log.head()) >= head);
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
