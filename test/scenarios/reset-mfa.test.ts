/** `strata-admin account reset-mfa` beside a running server. */
import assert from 'node:assert/strict';
import { pino } from 'pino';
import { beforeAll, describe, test } from 'vitest';
import { composeFoundation } from '../../apps/server/foundation.ts';
import { readSettings } from '../../apps/server/settings.ts';
import { uuid } from '../../core/kernel/ids.ts';
import { beginPasskeyEnrolment } from '../../core/use-cases/signing-in/passkeys.ts';
import { beginTotpEnrolment } from '../../core/use-cases/signing-in/totp.ts';
import { accepted } from '../support/accounts.ts';
import { suiteEnding } from '../support/cleanup.ts';
import { mfaParts, owner } from '../support/mfa.ts';
import { admin, api, createAccount, type Strata } from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';

describe('Resetting the second factors of an account', () => {
  const ending = suiteEnding();
  let shared: SharedParts;
  let strata: Strata;

  beforeAll(async () => {
    shared = await sharedParts(ending);
    strata = await startNode(ending, shared);
  });

  const reset = (username: string, ...more: string[]) =>
    admin(strata, ['account', 'reset-mfa', '--username', username, ...more]);

  /** Begins two enrolments from outside the server, with its own configuration. */
  async function enrolTwo(account: string) {
    const foundation = await composeFoundation(readSettings(strata.env, process.cwd()), pino({ level: 'silent' }), {
      besideServer: true,
      entitiesSizeBytesMax: 1024 * 1024,
      onFault: (what, cause) => assert.fail(`${what}: ${String(cause)}`),
    });
    const context = { ...foundation.context, ...mfaParts() };
    await context.entities.barrier();
    const origin = owner(uuid(account));
    const app = accepted(await beginTotpEnrolment(context, origin, 'Phone'));
    const passkey = accepted(await beginPasskeyEnrolment(context, origin, 'Key'));
    await foundation.close();
    return [app.id, passkey.id];
  }

  test('says what it would do without --yes; with it removes all tokens, in the history, and no access token', async () => {
    const ada = await createAccount(strata, 'ada');
    const [app, passkey] = await enrolTwo(ada.id);
    await assert.rejects(reset('ada'), /exited 1:[^]*"Phone" \(totp, pending\)[^]*Nothing was done/);
    const removed = [
      { id: app, kind: 'totp', name: 'Phone' },
      { id: passkey, kind: 'passkey', name: 'Key' },
    ];
    assert.deepEqual(await reset('ada', '--yes'), { id: ada.id, username: 'ada', removed });
    const last = (await shared.log.since()).filter(({ stream }) => stream === `account-${ada.id}`).at(-1);
    assert.deepEqual([last?.type, last?.actor], ['MfaReset', { kind: 'admin', id: 'account reset-mfa' }]);
    assert.equal((await api(strata, ada.token, 'GET', '/v1/repositories')).status, 200);
    await assert.rejects(reset('nobody', '--yes'), /There is no account/);
  });
});
