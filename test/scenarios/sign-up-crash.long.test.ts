/**
 * A server that is killed between any two steps of a sign-up or of a change of the email address leaves nothing half.
 */
import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import type { FailpointName } from '../../core/ports/failpoints.ts';
import { type Ending, suiteEnding } from '../support/cleanup.ts';
import { person } from '../support/person.ts';
import type { Strata } from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';

const PASSWORD = 'correct horse battery';

describe('A server that is killed', () => {
  const ending = suiteEnding();
  let shared: SharedParts;
  let whole: Strata;

  beforeAll(async () => {
    shared = await sharedParts(ending);
    whole = await startNode(ending, shared);
  });

  /** Sends the form to a server that dies at the failpoint, and waits until it is dead. */
  async function dying(
    context: Ending,
    point: FailpointName,
    send: (strata: Strata) => Promise<unknown>,
  ): Promise<void> {
    // A worker soon finishes changes of an address that were begun before, and would die of that.
    const roles = 'api,git,website';
    const strata = await startNode(context, shared, { STRATA_FAILPOINT: point, STRATA_ROLES: roles });
    await assert.rejects(send(strata));
    await strata.exited();
    assert.equal(strata.process.signalCode, 'SIGKILL');
  }

  const canSignIn = async (login: string): Promise<boolean> => {
    const { status } = await person().submit(whole, '/sign-in', { login, password: PASSWORD });
    assert.ok(status === 303 || status === 422, String(status));
    return status === 303;
  };

  for (const [n, point] of (
    ['account-username-claimed', 'account-email-claimed', 'account-created', 'account-username-confirmed'] as const
  ).entries()) {
    test(`at ${point} leaves a whole account or none`, async (context) => {
      const username = `person-${n}`;
      const email = `${username}@example.org`;
      const wanted = { username, email, password: PASSWORD };
      await dying(context, point, (strata) => person().submit(strata, '/sign-up', wanted));
      const made = point === 'account-created' || point === 'account-username-confirmed';
      assert.deepEqual([await canSignIn(username), await canSignIn(email)], [made, made]);
      const again = await person().submit(whole, '/sign-up', wanted);
      assert.equal(again.status, 422, 'the names are taken, or stay claimed for ten minutes');
    });
  }

  for (const [n, point] of (
    ['email-claimed', 'email-changed', 'email-claim-confirmed', 'email-record-removed'] as const
  ).entries()) {
    test(`at ${point} leaves the account one address, and the next change goes through`, async (context) => {
      const username = `mover-${n}`;
      const [former, next, third] = ['old', 'new', 'third'].map((each) => `${each}-${n}@example.org`);
      assert.ok(former !== undefined && next !== undefined && third !== undefined);
      const ada = person();
      assert.equal((await ada.submit(whole, '/sign-up', { username, email: former, password: PASSWORD })).status, 303);
      const move = (email: string) => ({ email, current_password: PASSWORD });
      await dying(context, point, (strata) => ada.submit(strata, '/settings/email', move(next)));
      const changed = point !== 'email-claimed';
      assert.match(await ada.read(whole, '/settings'), new RegExp(`<dd>${changed ? next : former}</dd>`));
      assert.equal(await canSignIn(changed ? next : former), true);
      assert.equal((await ada.submit(whole, '/settings/email', move(third))).status, 303);
      assert.match(await ada.read(whole, '/settings'), new RegExp(`<dd>${third}</dd>`));
      const taking = { username: `taker-${n}`, email: former, password: PASSWORD };
      assert.equal((await person().submit(whole, '/sign-up', taking)).status, 303, 'the former address is free');
    });
  }
});
