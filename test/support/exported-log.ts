/** An account with a log of many kinds of entries, and exports of it over the API. */
import assert from 'node:assert/strict';
import { parseCheckpoint, parseKeys, type VerifierKey } from '../../apps/verifier/checkpoint.ts';
import { verifyChunks } from '../../apps/verifier/file.ts';
import type { VerifyOptions } from '../../apps/verifier/verify.ts';
import { decideAccount } from '../../core/account/decide.ts';
import { accounts } from '../../core/account/evolve.ts';
import type { AccountId } from '../../core/kernel/ids.ts';
import { execute } from '../../core/runtime/execute.ts';
import { type ApiFixture, createApiFixture, type TestToken } from './api-fixture.ts';
import { CAUSE } from './node.ts';

export interface ExportedLog {
  readonly fixture: ApiFixture;
  readonly account: AccountId;
  readonly token: TestToken;
  readonly keys: readonly VerifierKey[];
  /** Adds some entries, a minute later. */
  grow(): Promise<void>;
  /** Returns the text of an export; the query begins with a question mark. */
  exported(query?: string, by?: TestToken): Promise<string>;
  checkpoint(): Promise<string>;
  /** Records that the operator accepted the loss of a checkpoint. */
  accept(loss: { readonly size: number; readonly root: string; readonly reason: string }): Promise<void>;
  close(): Promise<void>;
}

export async function createExportedLog(): Promise<ExportedLog> {
  const fixture = await createApiFixture();
  const account = await fixture.account('ada');
  const token = await fixture.token(account);
  const tree = fixture.objects.tree({ file: ['100644', fixture.objects.blob('text')] });
  let count = 0;

  const read = async (path: string, by = token): Promise<string> => {
    const answer = await fixture.request('GET', path, by);
    assert.equal(answer.statusCode, 200, answer.body);
    return answer.body;
  };
  const grow = async (): Promise<void> => {
    count += 1;
    fixture.clock.advance(60_000);
    const repository = await fixture.repository(account, `engine-${count}`);
    const tip = fixture.objects.commit({ tree, seconds: count });
    await fixture.push(repository, { 'refs/heads/master': tip, [`refs/heads/päth/${count}`]: tip });
    await fixture.push(repository, { [`refs/heads/päth/${count}`]: null });
    await fixture.token(account, { name: `a name "quoted" \u{1f600} ${count}` });
    await fixture.webhook(account);
    await fixture.trustRule(account);
    await fixture.bucket(account);
  };
  await fixture.account('bob');
  await grow();
  const keys = parseKeys(await read('/.well-known/strata-log-keys'));
  return {
    ...{ fixture, account, token, keys, grow },
    exported: (query = '', by) => read(`/v1/account/events/export${query}`, by),
    checkpoint: () => read('/v1/account/checkpoints/latest'),
    accept: async (loss) => {
      const recorded = await execute(fixture.context, accounts, account, { account, cause: CAUSE }, (state) =>
        decideAccount(state, { type: 'AcceptTailLoss', ...loss }),
      );
      assert.ok(!('refused' in recorded));
    },
    close: () => fixture.close(),
  };
}

/** Verifies a text in chunks that end anywhere. */
export async function verifyText(text: string | Buffer, options: Partial<VerifyOptions> = {}) {
  const bytes = Buffer.from(text);
  async function* chunks(): AsyncGenerator<Buffer> {
    for (let at = 0; at < bytes.length; at += 65_536) yield bytes.subarray(at, at + 65_536);
  }
  return verifyChunks(chunks(), { keys: null, older: [], ...options });
}

export function kept(note: string) {
  const checkpoint = parseCheckpoint(note);
  assert.ok(checkpoint !== null);
  return checkpoint;
}
