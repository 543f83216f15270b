/** Finding repositories by a part of their names and descriptions. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { changeRepository } from '../../../../core/use-cases/repositories/repositories.ts';
import { searchRepositories } from '../../../../core/use-cases/repositories/search-repositories.ts';
import { createApiFixture } from '../../../support/api-fixture.ts';
import { cleanUp } from '../../../support/cleanup.ts';
import { CAUSE } from '../../../support/node.ts';

test('a search finds names and descriptions of the account alone, without regard to case, in pages', async (context) => {
  const fixture = await createApiFixture();
  cleanUp(context, () => fixture.close());
  const account = await fixture.account('ada');
  const other = await fixture.account('bob');
  for (const name of ['Engine', 'gearbox', 'telescope']) await fixture.repository(account, name);
  await fixture.repository(other, 'engine-of-bob');
  const gearbox = await fixture.repository(account, 'plain');
  const description = 'Turns the ENGINE. 100%_sure';
  await changeRepository(fixture.context, { account, cause: CAUSE }, gearbox.id, { description });
  const seen = await fixture.context.entities.barrier();
  const found = async (text: string, offset = 0, limit = 10) => {
    const { items, total } = await searchRepositories(fixture.context, {
      account,
      text,
      seen,
      page: { offset, limit },
    });
    return { names: items.map(({ name }) => name), total };
  };
  assert.deepEqual(await found('engine'), { names: ['Engine', 'plain'], total: 2 });
  assert.deepEqual(await found('  GEAR '), { names: ['gearbox'], total: 1 });
  assert.deepEqual(await found('%'), { names: ['plain'], total: 1 });
  assert.deepEqual(await found('nothing'), { names: [], total: 0 });
  assert.deepEqual(await found('', 1, 2), { names: ['gearbox', 'plain'], total: 4 });
  assert.deepEqual(await found('e', 1, 1), { names: ['gearbox'], total: 4 });
});
