/**
 * The attack: a stranger without an account begins device logins from many addresses: 4,000 in 52 s wrote three events
 * each into the log permanently, and pushed the logins of others out; at the cap each took 8 ms of the database. A
 * trusted proxy plays the addresses.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { createPool } from '../../../adapters/postgres/pool.ts';
import { DEVICE_SESSIONS_PER_MINUTE_MAX } from '../../../apps/api/handlers/device-login.ts';
import { DEVICE_SESSIONS_PENDING_MAX } from '../../../core/use-cases/tokens/device-login.ts';
import { setStage, underAttack } from '../../support/attack.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { noteFigure } from '../../support/figures.ts';
import { keepLog } from '../../support/log.ts';
import { admin, api, type Strata } from '../../support/strata.ts';

const LOGINS = 4_000;
/** Logins of other strangers that wait already. */
const WAITING = 8_000;
const AT_ONCE = 16;
/** The requests of each address; one more than it may begin within a minute, so that some are refused. */
const OF_ADDRESS = DEVICE_SESSIONS_PER_MINUTE_MAX + 1;

const FILL = `
  INSERT INTO device_login_requests
    (id, secret_hash, network, requested_at, expires_at, user_code, hostname, address, step, due_at)
  SELECT gen_random_uuid(), 'a', '12.0.' || n / 10, begun, ending, 'BCDF-0000', 'x', '', 'forget-device', ending
  FROM generate_series(1, $1::integer) AS n,
    to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS begun,
    to_char(now() AT TIME ZONE 'UTC' + interval '10 minutes', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS ending`;

interface Session {
  readonly id: string;
  readonly user_code: string;
  readonly secret_token: string;
}

async function begin(
  { url }: Pick<Strata, 'url'>,
  address: string,
): Promise<{ readonly status: number; readonly session: Session }> {
  const headers = { 'content-type': 'application/json', 'x-forwarded-for': address };
  const body = JSON.stringify({ hostname: `machine of ${address}` });
  const answer = await fetch(`${url}/v1/auth/sessions`, { method: 'POST', headers, body });
  return { status: answer.status, session: (await answer.json()) as Session };
}

describe('A flood of device logins', () => {
  test('leaves no event and at most 10,000 rows, and the logins of others go on', async (context) => {
    const stage = await setStage(context, { env: { STRATA_TRUSTED_PROXIES: '127.0.0.1' } });
    const { strata, shared, other } = stage;
    const pool = createPool({ connectionString: shared.env['STRATA_DATABASE_URL'] ?? '', log: keepLog() });
    cleanUp(context, () => pool.end());
    const rows = async (): Promise<number> => {
      const text = `SELECT count(*)::int AS count FROM device_login_requests WHERE step = 'forget-device' AND NOT is_held`;
      return (await pool.query<{ count: number }>(text)).rows[0]?.count ?? 0;
    };
    const early = await begin(strata, '203.0.113.9');
    await pool.query(FILL, [WAITING]);
    const statuses = new Map<number, number>();
    const took: number[] = [];
    const head = await shared.log.head();
    let number = 0;
    const flood = async (): Promise<void> => {
      for (let n = number++; n < LOGINS; n = number++) {
        const host = Math.floor(n / OF_ADDRESS);
        const begunAt = performance.now();
        const { status } = await begin(strata, `11.${host >> 8}.${host & 255}.1`);
        took.push(performance.now() - begunAt);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    };
    const attack = async (): Promise<void> => {
      await Promise.all(Array.from({ length: AT_ONCE }, flood));
    };
    // Reads of the other account are events of a minute each.
    await underAttack(context, stage, `${LOGINS} device logins`, attack, { eventsMax: 60 });
    const atCap = took.slice(-1_000).reduce((sum, ms) => sum + ms, 0) / 1_000 / AT_ONCE;
    noteFigure(context, `answers ${JSON.stringify([...statuses])}; at the cap ${atCap.toFixed(1)} ms for each`);
    assert.deepEqual(
      [...statuses.keys()].toSorted((a, b) => a - b),
      [201, 429],
    );
    const floods = (await shared.log.since(head)).filter(({ stream }) => stream.startsWith('deviceSession-'));
    assert.equal(floods.length, 0, 'nobody decided');
    const kept = await rows();
    assert.ok(kept > DEVICE_SESSIONS_PENDING_MAX / 2 && kept <= DEVICE_SESSIONS_PENDING_MAX, `${kept} rows`);

    for (const { status, session } of [early, await begin(strata, '203.0.113.10')]) {
      assert.equal(status, 201);
      await admin(strata, ['device', 'grant', '--username', other.username, '--code', session.user_code]);
      const target = `/v1/auth/sessions/${session.id}/poll?secret_token=${session.secret_token}`;
      const polled = await api(strata, '', 'GET', target);
      assert.equal(polled.status, 200, polled.text);
    }
  });
});
