/** The contract of reading Git objects, on the adapter that calls git. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { temporaryFolder, testRepository } from '../support/git.ts';
import { testDatabase } from '../support/object-database.ts';
import { objectReaderContract } from './object-database.ts';

objectReaderContract('by git', async (objects) => {
  const folder = temporaryFolder('contract');
  const repository = testRepository(join(folder.path, 'repository'));
  const all = [...objects.all()];
  for (const { id, type, content } of all) assert.equal(repository.object(type, content), id, `the id of a ${type}`);
  const database = await testDatabase();
  const pushed = await database.push(database.newObjects(), repository.packOf(all.map(({ id }) => id)));
  const reader = await database.database.open(pushed);
  const close = async (): Promise<void> => {
    await database.close();
    folder.remove();
  };
  return { reader, close };
});
