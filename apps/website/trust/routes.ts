/** The pages about trust rules: the list, one rule with what it refused, the forms, and trying a token. */
import type { Room } from '../layout/room.ts';
import { createRoutes } from './create.ts';
import { deletionRoutes } from './deletion.ts';
import { editRoutes } from './edit.ts';
import { listRoutes } from './list.ts';
import { ruleRoutes } from './rule.ts';
import { trialRoutes } from './trial.ts';

export const trustRoom: Room = {
  navigation: () => ({ label: 'CI trust', path: '/oidc-trust' }),
  routes(site) {
    listRoutes(site);
    createRoutes(site);
    trialRoutes(site);
    ruleRoutes(site);
    editRoutes(site);
    deletionRoutes(site);
  },
};
