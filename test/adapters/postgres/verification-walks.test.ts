/** The walks of the verification on a real PostgreSQL: who walks, and where a walk goes on. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'vitest';
import { createPool } from '../../../adapters/postgres/pool.ts';
import { createPostgresVerificationWalks } from '../../../adapters/postgres/verification-walks.ts';
import { timestamp } from '../../../core/kernel/ids.ts';
import { cleanUp, type Ending } from '../../support/cleanup.ts';
import { keepLog } from '../../support/log.ts';
import { openDatabase } from './open-store.ts';

const BEGUN = timestamp('2026-11-20T10:00:00.000Z');
const LATER = timestamp('2026-11-25T10:00:00.000Z');
const NONE = { begunAt: null, cursor: null, wholeSince: null };

async function openWalks(context: Ending) {
  const pool = createPool({ connectionString: await openDatabase(context), log: keepLog() });
  cleanUp(context, () => pool.end());
  return { pool, walks: createPostgresVerificationWalks(pool), first: randomUUID(), second: randomUUID() };
}

describe('A walk of the verification', () => {
  test('goes on where it was saved, while its process holds it', async (context) => {
    const { walks, first, second } = await openWalks(context);
    assert.deepEqual(await walks.take('week', first), { isHeld: true, ...NONE });
    const progress = { begunAt: BEGUN, cursor: 'log 7', wholeSince: null };
    assert.equal(await walks.save('week', first, progress), true);
    assert.deepEqual(await walks.take('week', first), { isHeld: true, ...progress });
    assert.deepEqual(await walks.take('week', second), { isHeld: false, ...progress });
    assert.equal(await walks.save('week', second, { ...progress, cursor: 'log 9' }), false);
    assert.deepEqual(await walks.take('month', second), { isHeld: true, ...NONE });
  });

  test('is taken by another process ten minutes after its process last kept it', async (context) => {
    const { pool, walks, first, second } = await openWalks(context);
    await walks.take('week', first);
    const ago = (span: string) =>
      pool.query('UPDATE verification_walks SET held_until = held_until - $1::interval', [span]);
    await ago('9 minutes 50 seconds');
    assert.equal((await walks.take('week', second)).isHeld, false);
    await ago('20 seconds');
    assert.equal((await walks.take('week', second)).isHeld, true);
    assert.equal(await walks.save('week', first, NONE), false);
  });

  test('keeps the later of two whole rounds, that of an operator among them', async (context) => {
    const { walks, first } = await openWalks(context);
    await walks.walked('week', BEGUN);
    assert.deepEqual(await walks.take('week', first), { isHeld: true, ...NONE, wholeSince: BEGUN });
    await walks.walked('week', LATER);
    await walks.save('week', first, { begunAt: BEGUN, cursor: null, wholeSince: BEGUN });
    assert.deepEqual(await walks.take('week', first), {
      isHeld: true,
      begunAt: BEGUN,
      cursor: null,
      wholeSince: LATER,
    });
    await walks.walked('week', BEGUN);
    assert.equal((await walks.take('week', first)).wholeSince, LATER);
  });
});
