/**
 * The pages about storage buckets: the list, the guide, one bucket with its errors, and the forms that make and change
 * one.
 */
import type { Room } from '../layout/room.ts';
import { bucketRoutes } from './bucket.ts';
import { createRoutes } from './create.ts';
import { deletionRoutes } from './deletion.ts';
import { editRoutes } from './edit.ts';
import { errorRoutes } from './errors.ts';
import { listRoutes } from './list.ts';
import { setupRoutes } from './setup.ts';

export const bucketsRoom: Room = {
  navigation: ({ hasStorage }) => (hasStorage ? { label: 'Storage', path: '/storage-buckets' } : null),
  routes(site) {
    listRoutes(site);
    setupRoutes(site);
    errorRoutes(site);
    createRoutes(site);
    bucketRoutes(site);
    editRoutes(site);
    deletionRoutes(site);
  },
};
