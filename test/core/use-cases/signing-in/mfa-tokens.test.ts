/** MFA tokens of both kinds: names, deletion, the operator's reset, and what becomes of interrupted removals. */
import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'vitest';
import { accounts } from '../../../../core/account/evolve.ts';
import { needsSecondFactor } from '../../../../core/account/state.ts';
import { LOG_START } from '../../../../core/kernel/envelope.ts';
import type { AccountId } from '../../../../core/kernel/ids.ts';
import type { VaultField, VaultRef } from '../../../../core/kernel/vault-ref.ts';
import {
  deleteMfaToken,
  listMfaTokens,
  renameMfaToken,
  resetMfa,
} from '../../../../core/use-cases/signing-in/mfa-tokens.ts';
import { beginPasskeyEnrolment } from '../../../../core/use-cases/signing-in/passkeys.ts';
import { removedRecords } from '../../../../core/use-cases/sweeping/removed-records.ts';
import { accepted, codeOf, newAccount } from '../../../support/accounts.ts';
import { createMemoryEventStore } from '../../../support/memory/event-store.ts';
import { enrolPasskey, enrolTotp, epochOf, type MfaNode, mfaParts, owner } from '../../../support/mfa.ts';
import { CAUSE, startNode } from '../../../support/node.ts';

describe('MFA tokens', () => {
  let node: MfaNode;
  let ada: AccountId;

  beforeEach(async () => {
    node = { ...(await startNode(createMemoryEventStore())), ...mfaParts() };
    ada = await newAccount(node, 'ada');
  });

  /** Returns the vault records of the tokens: their fields and references. */
  async function records(): Promise<readonly (readonly [VaultField, VaultRef])[]> {
    const tokens = await listMfaTokens(node, ada);
    return tokens.flatMap((token): [VaultField, VaultRef][] => {
      if (token.kind === 'totp') return [['totp-seed', token.seedRef]];
      return token.status === 'active' ? [['passkey', token.passkeyRef]] : [];
    });
  }

  test('are listed in the order of their enrolment, with the names that their owner gave and changed', async () => {
    const { id } = await enrolTotp(node, ada, 'Phone');
    await enrolPasskey(node, ada, 'Key');
    accepted(await renameMfaToken(node, owner(ada), id, 'New phone'));
    assert.deepEqual(
      (await listMfaTokens(node, ada)).map(({ name, kind }) => [name, kind]),
      [
        ['New phone', 'totp'],
        ['Key', 'passkey'],
      ],
    );
    assert.equal(codeOf(await renameMfaToken(node, owner(ada), id, '')), 'mfa-token-name-length');
    assert.deepEqual(await listMfaTokens(node, node.ids.next()), []);
  });

  // The attack: the id of another account's token is deleted or renamed.
  test('are changed by their own account only', async () => {
    const { id } = await enrolTotp(node, ada);
    const bob = await newAccount(node, 'bob');
    assert.equal(codeOf(await deleteMfaToken(node, owner(bob), id)), 'mfa-token-not-found');
    assert.equal(codeOf(await renameMfaToken(node, owner(bob), id, 'mine')), 'mfa-token-not-found');
    assert.equal((await listMfaTokens(node, ada)).length, 1);
  });

  test('are all removed by an operator, with their records, which ends sessions and stands in the history', async () => {
    await enrolTotp(node, ada);
    await enrolPasskey(node, ada);
    accepted(await beginPasskeyEnrolment(node, owner(ada), 'pending'));
    const before = await records();
    const epoch = await epochOf(node, ada);
    const { removed } = accepted(await resetMfa(node, { account: ada, cause: CAUSE }));
    assert.equal(removed.length, 3);
    assert.deepEqual(await listMfaTokens(node, ada), []);
    assert.equal(await epochOf(node, ada), epoch + 1);
    for (const [field, ref] of before) assert.equal(await node.vault.get(ada, field, ref), null);
    const last = (await node.events.readAll(LOG_START, 1_000)).at(-1);
    assert.deepEqual([last?.type, last?.actor], ['MfaReset', CAUSE.actor]);
    const { state } = await node.entities.reload(accounts, ada);
    assert.ok(state.status === 'open' && !needsSecondFactor(state));
    assert.deepEqual(accepted(await resetMfa(node, { account: ada, cause: CAUSE })).removed, []);
    assert.equal(await epochOf(node, ada), epoch + 1);
  });

  test('name in the event of their removal the records that an interrupted removal leaves', async () => {
    const dying: MfaNode = { ...node, failpoint: () => Promise.reject(new Error('died')) };
    const { id } = await enrolTotp(node, ada);
    await enrolPasskey(node, ada);
    const [seed, passkey] = await records();
    await assert.rejects(deleteMfaToken(dying, owner(ada), id), /died/);
    await assert.rejects(resetMfa(dying, owner(ada)), /died/);
    const removals = (await node.events.readAll(LOG_START, 1_000)).filter(({ type }) => type.startsWith('Mfa'));
    assert.deepEqual(removals.map(removedRecords), [[seed?.[1]], [passkey?.[1]]]);
  });
});
