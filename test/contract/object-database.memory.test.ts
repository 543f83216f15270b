/** The contract of reading Git objects, on the in-memory implementation. */
import { randomUUID } from 'node:crypto';
import { type RepositoryId, uuid } from '../../core/kernel/ids.ts';
import { onPlatform } from '../support/layers-in.ts';
import { objectReaderContract } from './object-database.ts';

objectReaderContract('in memory', async ({ database }) => {
  const repository = uuid<RepositoryId>(randomUUID());
  const reader = await database.open({
    repository,
    place: onPlatform(),
    revision: 'none',
    shrinkEpoch: 0,
    layers: [],
  });
  return { reader, close: async () => undefined };
});
