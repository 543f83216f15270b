/** `strata-admin projections parked` and `replay`: an event that a real server could not apply, and its repair. */
import assert from 'node:assert/strict';
import pg from 'pg';
import { test } from 'vitest';
import { cleanUp } from '../../support/cleanup.ts';
import { eventually } from '../../support/processes.ts';
import { admin, api, createAccount, createToken, tryAdmin } from '../../support/strata.ts';
import { sharedParts, startNode } from '../../support/strata-on-postgres.ts';

interface Parked {
  readonly parked: readonly {
    readonly model: string;
    readonly stream: string;
    readonly revision: number;
    readonly events: number;
    readonly attempts: number;
    readonly error: string;
  }[];
}

test('lists a parked stream, tries it again on request, and applies it when its event can be applied', async (context) => {
  const shared = await sharedParts(context);
  const strata = await startNode(context, shared);
  const ada = await createAccount(strata, 'ada');
  const database = new pg.Client({ connectionString: shared.env['STRATA_DATABASE_OWNER_URL'] });
  await database.connect();
  cleanUp(context, () => database.end());
  const parked = async (): Promise<Parked['parked']> =>
    ((await admin(strata, ['projections', 'parked'])) as Parked).parked;
  assert.deepEqual(await parked(), []);
  assert.equal((await tryAdmin(strata, ['projections', 'replay'])).stdout, 'Nothing is parked\n');

  const { rows } = await database.query<{ name: string }>(
    `SELECT unnest(tables) AS name FROM read_models.checkpoints WHERE name = 'access_tokens'`,
  );
  const table = rows[0]?.name ?? '';
  // A constraint makes the model's table refuse one event.
  await database.query(`ALTER TABLE ${table} ADD CONSTRAINT poison CHECK (name <> 'scenario') NOT VALID`);
  const token = await createToken(strata, 'ada');
  await eventually('the stream is parked', async () => (await parked()).length === 1);
  const [found] = await parked();
  const stream = `accessToken-${token.id}`;
  assert.deepEqual(
    { ...found, error: '' },
    { model: 'access_tokens', stream, revision: 0, events: 1, attempts: 1, error: '' },
  );
  assert.match(found?.error ?? '', /23514.*poison/);
  const human = await tryAdmin(strata, ['projections', 'parked']);
  assert.match(
    human.stdout,
    new RegExp(`^access_tokens: ${stream} from revision 0, 1 events, tried 1 times: .*poison`),
  );

  const early = await tryAdmin(strata, ['--json', 'projections', 'replay', '--stream', stream]);
  assert.equal(early.code, 1);
  const report = JSON.parse(early.stdout) as Parked & { readonly replayed: unknown };
  assert.deepEqual([report.replayed, report.parked[0]?.attempts], [[], 2]);
  const other = await tryAdmin(strata, ['projections', 'replay', '--model', 'usage']);
  assert.deepEqual([other.code, other.stdout], [0, 'Nothing is parked\n']);
  const unknown = await tryAdmin(strata, ['projections', 'replay', '--model', 'nothing']);
  assert.equal(unknown.code, 1);
  assert.match(unknown.stderr, /No model is called nothing: there are .*access_tokens/);

  // Once by the running server, and once by the command alone.
  await database.query(`ALTER TABLE ${table} DROP CONSTRAINT poison`);
  const replayed = await admin(strata, ['projections', 'replay', '--model', 'access_tokens']);
  assert.deepEqual(replayed, { replayed: [{ model: 'access_tokens', stream }], parked: [] });
  const listed = await api(strata, ada.token, 'GET', '/v1/access-tokens');
  assert.match(listed.text, new RegExp(token.id));
  await database.query(`ALTER TABLE ${table} ADD CONSTRAINT poison CHECK (name <> 'scenario') NOT VALID`);
  const second = await createToken(strata, 'ada');
  await eventually('the second stream is parked', async () => (await parked()).length === 1);
  await strata.stop();
  await database.query(`ALTER TABLE ${table} DROP CONSTRAINT poison`);
  const alone = await tryAdmin(strata, ['projections', 'replay']);
  assert.deepEqual([alone.code, alone.stdout], [0, `access_tokens: accessToken-${second.id} is applied\n`]);
  assert.deepEqual(await parked(), []);
});
