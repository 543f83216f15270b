/** The pages about webhooks: the list, one webhook with its deliveries, and the forms that create and change one. */
import type { Room } from '../layout/room.ts';
import { changeRoutes } from './changes.ts';
import { createRoutes } from './create.ts';
import { deliveryRoutes } from './delivery.ts';
import { editRoutes } from './edit.ts';
import { listRoutes } from './list.ts';
import { webhookRoutes } from './webhook.ts';

export const webhooksRoom: Room = {
  navigation: () => ({ label: 'Webhooks', path: '/webhooks' }),
  routes(site) {
    listRoutes(site);
    createRoutes(site);
    webhookRoutes(site);
    editRoutes(site);
    changeRoutes(site);
    deliveryRoutes(site);
  },
};
