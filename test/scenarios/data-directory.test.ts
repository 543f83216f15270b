/** A data directory serves one server, whatever database it uses; `strata-admin` may run beside that server. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { admin, createAccount, startStrata } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';

test('a second server on a data directory is refused with the pid of the first, which keeps running', async (context) => {
  const shared = await sharedParts(context);
  const first = await startNode(context, shared);
  const { dataDir } = first;
  const second = startStrata(context, { dataDir, env: shared.env });
  // The refusal is one line, without a stack trace, since nothing in the program failed.
  const refusal = new RegExp(
    `ready:\\nThe server with pid ${first.process.pid} runs on ${dataDir}. Stop it, or give this one another data directory`,
  );
  await assert.rejects(second, refusal);
  assert.equal((await fetch(`${first.url}/readyz`)).status, 200);
  await createAccount(first, 'ada');
  const again = await first.restart();
  assert.equal(await again.stop(), 0);
  await startStrata(context, { dataDir, env: shared.env });
});

test('a second server on an embedded database is refused too, and strata-admin works beside the first', async (context) => {
  const first = await startStrata(context);
  const ada = await createAccount(first, 'ada');
  const second = startStrata(context, { dataDir: first.dataDir });
  await assert.rejects(second, new RegExp(`The server with pid ${first.process.pid} runs on `));
  assert.equal(await first.stop(), 0);
  // Without a server, strata-admin starts the database itself and releases the directory at its end.
  const { id } = (await admin(first, ['account', 'set-plan', '--username', 'ada', '--plan', 'PRO'])) as { id: string };
  assert.equal(id, ada.id);
  await first.restart();
});
